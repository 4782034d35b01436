# Takes long: tests/e2e/karmada 86_api_servers_follow_the_members_of_etcd
# shellcheck shell=bash
. "$ROOT/tests/e2e/karmada-lib.sh"
# The API servers of h1, h2 and h3 use etcd on these hosts; then on five, and on three again. Their clients notice nothing.
fresh
hosts reset h4 &
hosts reset h5
wait
three=$state/karmada-members-three.ini five=$state/karmada-members-five.ini
grep -v '^\[karmada_control_plane\|^etcd$' "$state/karmada.ini" >"$three"
printf '\n[karmada_control_plane]\nh1\nh2\nh3\n' >>"$three"
sed "/^\[etcd\]/a $(grep '^h4 ' "$inventory")\n$(grep '^h5 ' "$inventory")" "$three" >"$five"
options=(-e "karmada_bundle=$WINDLASS_BUNDLE" -e "etcd_bundle=$ROOT/target/etcd/3.5" --playbooks "$ROOT/playbooks" --yes)
[ -z "${WINDLASS_STAND_INS:-}" ] || options+=(-e "@$WINDLASS_STAND_INS")
etcd_servers() { on "$1" sed -n "'s/.*--etcd-servers=\([^\"]*\)\".*/\1/p'" /etc/systemd/system/karmada-apiserver.service; }
# use HOST...: the API server of every host uses exactly these members.
use() {
  local h wanted
  wanted=$(for h in "$@"; do echo "https://$(address_of "$h"):2379"; done | sort | tr '\n' ' ')
  for h in h1 h2 h3; do
    [ "$(etcd_servers $h | tr ',' '\n' | sort | tr '\n' ' ')" = "$wanted" ] || broken "the API server of $h uses $(etcd_servers $h), not $wanted"
  done
}
etcd_inventory=$three
windlass apply -i "$three" "${options[@]}"
exits 0
use h1 h2 h3
kubectl create configmap kept --from-literal=a=b
windlass apply -i "$five" "${options[@]}"
exits 0
use h1 h2 h3 h4 h5
[ "$(etcdctl member list | grep -c 'started.*false')" = 5 ] || broken "there are not five members"
# One that the control plane's host has, and one on a host of its own.
windlass etcd remove-member h3 h5 -i "$five" "${options[@]}"
exits 0
use h1 h2 h4
[ "$(etcdctl member list | grep -c 'started.*false')" = 3 ] || broken "there are not three members"
for h in h1 h2 h3; do [ "$(kubectl_at $h get --raw /readyz)" = ok ] || broken "the API server of $h is not ready"; done
[ "$(kubectl get configmap kept -o 'jsonpath={.data.a}')" = b ] || broken "an object is lost"
hosts reset h5 &
hosts reset h4
wait
