# shellcheck shell=bash
# karmada-lib.sh: what the cases of the control plane use besides lib.sh.
karmada_inventory=$state/karmada.ini
etcd_inventory=$karmada_inventory
kubeconfig=$state/credentials/admin.kubeconfig

# h1, h2 and h3 carry etcd and the control plane; h4 and h5 have a member cluster each when member_up has made it.
[ "$karmada_inventory" -nt "$inventory" ] || {
  grep -v '^h[45] ' "$inventory"
  printf '\n[karmada_control_plane:children]\netcd\n'
} >"$karmada_inventory"

# karmada NAME [OPTION]...: the sub-command of this name, or else the playbook. Sub-commands do not ask.
karmada() {
  local sub_command
  karmada_command "$@"
  windlass "${sub_command[@]}"
}
# karmada_in_background FILE NAME: the same without waiting; its output in FILE, its process in $background.
karmada_in_background() {
  local sub_command output=$1
  shift
  karmada_command "$@"
  : >"$output"
  "$WINDLASS" "${sub_command[@]}" >"$output" 2>&1 </dev/null &
  background=$!
}
# karmada_playbook NAME [OPTION]...: the playbook, even if there is a sub-command.
karmada_playbook() {
  local sub_command playbook=$1
  shift
  karmada_command "$playbook"
  windlass playbook "${karmada_options[@]}" "$@" "$ROOT/playbooks/$playbook.yml"
}
# Sets $sub_command, and $karmada_options: how hosts and programs are given.
karmada_command() {
  local name=$1
  shift
  karmada_options=(-i "$karmada_inventory" -e "karmada_bundle=$WINDLASS_BUNDLE" -e "etcd_bundle=$ROOT/target/etcd/3.5")
  [ -z "${WINDLASS_STAND_INS:-}" ] || karmada_options+=(-e "@$WINDLASS_STAND_INS")
  case $name in
    status) sub_command=(status "${karmada_options[@]}" --playbooks "$ROOT/playbooks" "$@") ;;
    upgrade | rollback | certificates | remove-host) sub_command=("$name" "${karmada_options[@]}" --playbooks "$ROOT/playbooks" --yes "$@") ;;
    *) sub_command=(playbook "${karmada_options[@]}" "$@" "$ROOT/playbooks/$name.yml") ;;
  esac
}

bundled() { find "$WINDLASS_BUNDLE" -name "$1" -type f -perm -u+x | head -1; }
kubectl() { "$(bundled kubectl)" --kubeconfig "$kubeconfig" --request-timeout=20s "$@"; }
# The same API by another host.
kubectl_at() { local h=$1; shift; kubectl --server "https://$(address_of "$h"):5443" "$@"; }
address_of() { sed -n "s/^$1 ansible_host=//p" "$inventory"; }

# eventually COMMAND...: it succeeds within five minutes, or E2E_SLOW times as many.
eventually() {
  local most=$((SECONDS + 300 * ${E2E_SLOW:-1}))
  while [ "$SECONDS" -lt $most ]; do
    "$@" >/dev/null 2>&1 && return
    sleep 1
  done
  "$@" || broken "not after $((5 * ${E2E_SLOW:-1})) minutes: $*"
}
components='apiserver aggregated-apiserver kube-controller-manager webhook controller-manager scheduler'

# a_control_plane: h1, h2 and h3 carry a control plane and its etcd: the one that is there, or else a new one.
a_control_plane() {
  local h unit whole=true
  for h in h1 h2 h3; do
    [ -e "$state/credentials/karmada/hosts/$h/apiserver.crt" ] || whole=false
    for unit in etcd karmada-apiserver karmada-scheduler; do on "$h" systemctl is-active --quiet "$unit" || whole=false; done
  done
  [ "$whole" = false ] || return 0
  fresh
  karmada site
  exits 0
}

# member_up [HOST]...: member clusters on these hosts (h4 and h5), by member/up.yml. With stand-ins there are no tools of Karmada, and
# Kubernetes 1.20 has other controllers.
member_up() {
  local h of=("$@") vars='{"member_tools": ["karmada-agent", "karmadactl"]}'
  [ $# -gt 0 ] || of=(h4 h5)
  [ -z "${WINDLASS_STAND_INS:-}" ] || vars='{"member_more_controllers": ""}'
  {
    grep -v '^h[0-9] ' "$inventory" | sed 's/^\[etcd\]/[member]/'
    for h in "${of[@]}"; do grep "^$h " "$inventory"; done
  } >"$state/member-hosts.ini"
  windlass playbook -i "$state/member-hosts.ini" -e "karmada_bundle=$WINDLASS_BUNDLE" \
    -e "etcd_bundle=$ROOT/target/etcd/3.5" -e "$vars" "$ROOT/tests/e2e/member/up.yml"
  exits 0
  for h in "${of[@]}"; do recap "$h" failed 0; done
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

# With $karmada_inventory: the hosts of the control plane carry a load balancer, too, and an address that is nobody's.
vip() { local address; address=$(address_of h1); echo "${address%.*}.200"; }
with_load_balancer() {
  # shellcheck source=tests/debian-archive.sh
  . "$ROOT/tests/debian-archive.sh"
  local archive=$ROOT/target/debian-balancer
  karmada_inventory=$state/karmada-balanced.ini
  # Runs side by side share it.
  exec 9>"$archive.lock"
  flock 9
  if ! compgen -G "$archive/cache/archives/haproxy_*.deb" >/dev/null; then
    open_archive "$archive" bookworm deb
    hosts exec h1 cat /var/lib/dpkg/status >"$archive/status"
    private_apt "$archive" apt-get install --yes --download-only haproxy keepalived socat >"$archive/log" 2>&1 || { cat "$archive/log"; broken "no packages"; }
  fi
  exec 9>&-
  {
    cat "$state/karmada.ini"
    printf '\n[load_balancer:children]\netcd\n\n[karmada_control_plane:vars]\nkarmada_virtual_address=%s\n' "$(vip)"
    # With stand-ins they come with the bundle.
    [ -n "${WINDLASS_STAND_INS:-}" ] || printf 'load_balancer_package_files=%s\n' "[$(printf '"%s", ' "$archive"/cache/archives/*.deb | sed 's/, $//')]"
  } >"$karmada_inventory"
  if [ -n "${WINDLASS_STAND_INS:-}" ]; then
    local bundle
    for bundle in "$WINDLASS_BUNDLE" "$WINDLASS_BUNDLE_BEFORE"; do
      mkdir -p "$bundle/packages/load_balancer"
      cp -n "$archive"/cache/archives/*.deb "$bundle/packages/load_balancer/"
    done
  fi
}

# Asks the control plane by its virtual address, 24 times a second, until `client_ends`; what it said is in $scratch/client.
client_begins() {
  local python=$ROOT/target/client-venv/bin/python
  [ -x "$python" ] || { python3 -m venv "$ROOT/target/client-venv" && "$ROOT/target/client-venv/bin/pip" install --quiet --disable-pip-version-check h2==4.4.1; }
  mkfifo "$scratch/client.hold"
  "$python" "$ROOT/tests/e2e/client.py" "$kubeconfig" 3600 <"$scratch/client.hold" >"$scratch/client" 2>&1 &
  client=$!
  exec 8>"$scratch/client.hold"
}
client_ends() {
  exec 8>&-
  wait "$client" || true
  rm -f "$scratch/client.hold"
  cat "$scratch/client"
}
client_said() { grep -o "\"$1\": [0-9.]*" "$scratch/client" | sed 's/.* //'; }
nobody_noticed() {
  client_ends
  [ "$(client_said failures)" = 0 ] || broken "$(client_said failures) of $(client_said requests) requests failed"
}
# Requests failed, if at all, within so many seconds, or E2E_SLOW times as many.
failed_for_at_most() {
  client_ends
  local first last
  [ -n "$(client_said requests)" ] || broken "the client did not come to its end"
  first=$(client_said first_failure) last=$(client_said last_failure)
  echo "requests failed for $(awk -v a="${first:-0}" -v b="${last:-0}" 'BEGIN {print b - a}') s"
  awk -v a="${first:-0}" -v b="${last:-0}" -v most="$(($1 * ${E2E_SLOW:-1}))" 'BEGIN {exit b - a > most}' || broken "requests failed for too long"
}

# The program that a component of a host runs.
runs() { on "$1" 'basename $(dirname $(readlink -f /proc/$(systemctl show -p MainPID --value karmada-'"$2"')/exe))'; }
balanced() { on "$1" "echo 'show stat' | socat - UNIX-CONNECT:/run/karmada-load-balancer/haproxy.sock" | awk -F, -v h="$2" '$1 == "whole" && $2 == h {print $18}'; }

# skeleton HOST...: the file of a deployment of these hosts (cp-1 and on), by `windlass init`, up to where members would stand.
skeleton() {
  local h hosts=()
  for h in "$@"; do hosts+=("root@$(address_of "$h")"); done
  "$WINDLASS" init "${hosts[@]}" | sed -e "s#karmada.tar.zst#$WINDLASS_BUNDLE#" -e '/^  # The clusters/,$d' \
    -e "s#hostKeys: strict .*#privateKey: {file: id_ed25519}\n    knownHosts: [known_hosts]#"
}
# site VERB [OPTION]...: with such a file, $file.
site() {
  local verb=$1
  shift
  windlass "$verb" -f "$file" ${WINDLASS_STAND_INS:+-e "@$WINDLASS_STAND_INS"} --playbooks "$ROOT/playbooks" "$@"
}
