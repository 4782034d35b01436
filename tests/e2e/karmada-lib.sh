# shellcheck shell=bash
# karmada-lib.sh: what the cases of the control plane use besides lib.sh.
karmada_inventory=$state/karmada.ini
kubeconfig=$state/credentials/admin.kubeconfig

# All three hosts carry etcd and the control plane.
[ "$karmada_inventory" -nt "$inventory" ] || {
  cat "$inventory"
  printf '\n[karmada_control_plane:children]\netcd\n'
} >"$karmada_inventory"

# karmada PLAYBOOK [OPTION]...
karmada() {
  local playbook=$1
  shift
  windlass playbook -i "$karmada_inventory" -e "karmada_bundle=$WINDLASS_BUNDLE" \
    -e "etcd_bundle=$ROOT/target/etcd/3.5" ${WINDLASS_STAND_INS:+-e "@$WINDLASS_STAND_INS"} "$@" "$ROOT/playbooks/$playbook.yml"
}

bundled() { find "$WINDLASS_BUNDLE" -name "$1" -type f -perm -u+x | head -1; }
kubectl() { "$(bundled kubectl)" --kubeconfig "$kubeconfig" --request-timeout=20s "$@"; }
# The same API by another host.
kubectl_at() { local h=$1; shift; kubectl --server "https://$(address_of "$h"):5443" "$@"; }
address_of() { sed -n "s/^$1 ansible_host=//p" "$inventory"; }

# eventually COMMAND...: it succeeds within a minute.
eventually() {
  local i
  for ((i = 0; i < 60; i++)); do
    "$@" >/dev/null 2>&1 && return
    sleep 1
  done
  "$@" || broken "not after a minute: $*"
}
components='apiserver aggregated-apiserver kube-controller-manager webhook controller-manager scheduler'

# A member cluster on h3, by member/up.yml.
grep -q '^\[member\]' "$karmada_inventory" || printf '\n[member]\nh3\n' >>"$karmada_inventory"
member_kubeconfig=$state/members/h3.kubeconfig
member_up() {
  windlass playbook -i "$karmada_inventory" -e "karmada_bundle=$WINDLASS_BUNDLE" \
    -e "etcd_bundle=$ROOT/target/etcd/3.5" -e '{"member_tools": ["karmada-agent", "karmadactl"]}' "$ROOT/tests/e2e/member/up.yml"
  exits 0
}
member_down() { on h3 'systemctl stop member-agent member-kcm member-apiserver member-etcd; rm -rf /srv/member'; rm -rf "$state/members"; }
member() { "$(bundled kubectl)" --kubeconfig "$member_kubeconfig" --request-timeout=20s "$@"; }
karmadactl_there() { on h3 "/srv/member/agent/current/karmadactl $*"; }

# No host was changed, and none came so far that it could have been.
nothing_touched() { local h; for h in h1 h2 h3; do recap "$h" changed 0; done; }

# From here on h1 is the only host.
one_host() {
  karmada_inventory=$state/karmada-one.ini
  { grep -v '^h[23] ' "$inventory"; printf '\n[karmada_control_plane:children]\netcd\n'; } >"$karmada_inventory"
}
