# Takes long: tests/e2e/karmada 64_etcd_gets_another_authority_below_a_control_plane
# shellcheck shell=bash
. "$ROOT/tests/e2e/karmada-lib.sh"
# etcd's CA is replaced below a control plane at work: every component that connects to etcd follows. Behind the load balancer an API
# server uses only the member of its host: requests that wait for that member while it restarts may fail.
fresh
with_load_balancer
karmada site
exits 0
options=(-i "$karmada_inventory" -e "karmada_bundle=$WINDLASS_BUNDLE" -e "etcd_bundle=$ROOT/target/etcd/3.5" --playbooks "$ROOT/playbooks")
[ -z "${WINDLASS_STAND_INS:-}" ] || options+=(-e "@$WINDLASS_STAND_INS")
earlier=$(openssl x509 -in "$state/credentials/etcd/ca.crt" -noout -pubkey)
# authorities HOST: the digests of etcd's CAs in the files of this host.
authorities() { on "$1" 'sha256sum /etc/etcd/pki/ca.crt /etc/windlass/karmada/*/pki/etcd-ca.crt' | cut -d ' ' -f 1 | sort -u; }

windlass etcd rotate-ca --check "${options[@]}"
exits 0
says '^  restart +etcd: '
says '^  restart +karmada-apiserver.*: '
client_begins
windlass etcd rotate-ca --yes "${options[@]}"
exits 0
client_ends
echo "$(client_said failures) of $(client_said requests) requests failed"
[ "$(client_said failures)" -le $(($(client_said requests) / 500)) ] || broken "too many requests failed"
[ "$(openssl x509 -in "$state/credentials/etcd/ca.crt" -noout -pubkey)" != "$earlier" ] || broken "the CA is as before"
for h in h1 h2 h3; do
  [ "$(authorities $h)" = "$(sha256sum <"$state/credentials/etcd/ca.crt" | cut -d ' ' -f 1)" ] || broken "not every component of $h has the new CA alone"
done
kubectl get --raw /readyz
windlass apply --yes "${options[@]}"
exits 0
says '^Nothing to do\.$'
