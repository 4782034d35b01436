# shellcheck shell=bash
# karmada-lib.sh: what the cases of the control plane use besides lib.sh.
karmada_inventory=$state/karmada.ini
kubeconfig=$state/credentials/admin.kubeconfig

# h1, h2 and h3 carry etcd and the control plane; h4 and h5 have a member cluster each when member_up has made it.
[ "$karmada_inventory" -nt "$inventory" ] || {
  grep -v '^h[45] ' "$inventory"
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

# Member clusters on h4 and h5, by member/up.yml.
member_up() {
  local h
  {
    grep -v '^h[1-3] ' "$inventory" | sed 's/^\[etcd\]/[member]/'
  } >"$state/member-hosts.ini"
  windlass playbook -i "$state/member-hosts.ini" -e "karmada_bundle=$WINDLASS_BUNDLE" \
    -e "etcd_bundle=$ROOT/target/etcd/3.5" -e '{"member_tools": ["karmada-agent", "karmadactl"]}' "$ROOT/tests/e2e/member/up.yml"
  exits 0
  for h in h4 h5; do recap "$h" failed 0; done
}
member_down() { local h; for h in h4 h5; do hosts reset "$h"; done; rm -rf "$state/members"; }
member_kubeconfig=$state/members/h4.kubeconfig
member_at() { local h=$1; shift; "$(bundled kubectl)" --kubeconfig "$state/members/$h.kubeconfig" --request-timeout=20s "$@"; }
member() { member_at h4 "$@"; }
karmadactl_there() { on h4 "/srv/member/agent/current/karmadactl $*"; }
karmadactl() { "$(bundled karmadactl)" --kubeconfig "$kubeconfig" "$@"; }

# An inventory of the control plane and these lines of groups of its own.
with_members() { karmada_inventory=$state/karmada-members.ini; { cat "$state/karmada.ini"; printf '\n%s\n' "$@"; } >"$karmada_inventory"; }
# Two members: in push mode by a kubeconfig here, in pull mode by SSH to its host, where its agent is a service, too.
m1="m1 ansible_connection=local member_kubeconfig=members/h4.kubeconfig"
m2="m2 ansible_host=$(address_of h5) member_kubeconfig=/srv/member/kubeconfig member_kubeconfig_on_host=true member_sync_mode=Pull member_agent='{\"host\": \"m2\"}'"
joined() { [ "$(kubectl get cluster "$1" -o 'jsonpath={.spec.syncMode} {.status.conditions[?(@.type=="Ready")].status}')" = "$2 True" ]; }

# No host was changed, and none came so far that it could have been.
nothing_touched() { local h; for h in h1 h2 h3; do recap "$h" changed 0; done; }

# From here on h1 is the only host.
one_host() {
  karmada_inventory=$state/karmada-one.ini
  { grep -v '^h[2-5] ' "$inventory"; printf '\n[karmada_control_plane:children]\netcd\n'; } >"$karmada_inventory"
}
