# Needs Karmada's own programs.
# h2 has an etcd that the control plane's playbook knows nothing of but its address and certificates.
. "$ROOT/tests/e2e/karmada-lib.sh"
fresh
grep -v '^h[13] ' "$inventory" >"$scratch/etcd.ini"
windlass playbook -i "$scratch/etcd.ini" -e "credentials_dir=$state/others" -e "etcd_bundle=$ROOT/target/etcd/3.5" "$ROOT/playbooks/etcd.yml"
exits 0
one_host
sed -i 's/^\[etcd\]$/[karmada_control_plane]/; /^\[karmada_control_plane:children\]$/,$d' "$karmada_inventory"
cat >"$state/external.yml" <<END
karmada_etcd_prefix: /elsewhere/registry
etcd_external:
  endpoints: ['https://$(address_of h2):2379']
  ca_cert: $state/others/etcd/ca.crt
  client_cert: $state/others/etcd/admin.crt
  client_key: $state/others/etcd/admin.key
END
stored() { ETCDCTL_API=3 "$ROOT/target/etcd/3.5/etcdctl" --endpoints "https://$(address_of h2):2379" --cacert "$state/others/etcd/ca.crt" \
  --cert "$state/others/etcd/admin.crt" --key "$state/others/etcd/admin.key" get --prefix --keys-only --limit 1 "$1"; }
# One that does not answer, or does not know us, is refused before the host is touched.
tree h1 >"$scratch/before"
karmada karmada -e "@$state/external.yml" -e "{\"etcd_external\": {\"endpoints\": [\"https://$(address_of h2):2999\"], \"ca_cert\": \"$state/others/etcd/ca.crt\", \"client_cert\": \"$state/others/etcd/admin.crt\", \"client_key\": \"$state/others/etcd/admin.key\"}}"
exits 2
says 'the etcd of etcd_external cannot be used: .*:2999'
tree h1 >"$scratch/after"
same_trees "$scratch/before" "$scratch/after"
karmada karmada -e "@$state/external.yml"
exits 0
eventually kubectl get clusters
stored /elsewhere/registry/ | matches /elsewhere/registry/ || broken "nothing is stored under the prefix"
found=$(stored /registry/)
[ -z "$found" ] || broken "something is stored beside the prefix"
karmada karmada -e "@$state/external.yml"
exits 0
recap h1 changed 0
# What is stored is never looked for elsewhere.
karmada karmada -e "@$state/external.yml" -e karmada_etcd_prefix=/registry
exits 2
says 'are in etcd under /elsewhere/registry'
recap h1 changed 0
