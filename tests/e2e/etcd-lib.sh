# shellcheck shell=bash
# etcd-lib.sh: what the cases of etcd-cases use beside lib.sh. They have five hosts, h1 to h5.

# address_of HOST: its address.
address_of() { sed -n "s/^$1 ansible_host=\([^ ]*\).*/\1/p" "$inventory"; }

# members HOST...: windlass apply with an inventory of these hosts alone. More options are in the array $options.
options=()
members() {
  windlass apply -i "$(inventory_of "$@")" -e "etcd_bundle=$ROOT/target/etcd/${ETCD:-3.5}" --playbooks "$ROOT/playbooks" --yes "${options[@]}"
}
# etcd_members COMMAND HOST,... ARGUMENT...: windlass etcd COMMAND with an inventory of these hosts.
etcd_members() {
  local command=$1 of=$2
  shift 2
  # shellcheck disable=SC2046  # the names of hosts have no blanks
  windlass etcd "$command" "$@" -i "$(inventory_of $(tr , ' ' <<<"$of"))" -e "etcd_bundle=$ROOT/target/etcd/${ETCD:-3.5}" --playbooks "$ROOT/playbooks"
}

# fresh_five: fresh disks for all five, and no credentials of an earlier cluster.
fresh_five() {
  local h resets=()
  rm -rf "$state/credentials"
  for h in h1 h2 h3 h4 h5; do
    hosts reset "$h" &
    resets+=($!)
  done
  for h in "${resets[@]}"; do wait "$h" || broken "a host does not come back"; done
}

# are_members HOST...: exactly these are members, voters and healthy.
are_members() {
  local listed
  for _ in $(seq 180); do
    listed=$(etcdctl member list | awk -F', ' '$2 == "started" && $6 == "false" {print $3}' | sort | tr '\n' ' ') || true
    [ "$listed" != "$(printf '%s\n' "$@" | sort | tr '\n' ' ')" ] || break
    sleep 1
  done
  [ "$listed" = "$(printf '%s\n' "$@" | sort | tr '\n' ' ')" ] || broken "the members are $listed, not $*"
  [ "$(etcdctl member list | wc -l)" = $# ] || broken "there are more members than $*"
  well
}
member_id() { etcdctl member list | awk -F', ' -v name="$1" '$3 == name {print $1}'; }

# lead HOST: its member becomes the leader.
# shellcheck disable=SC1091  # a run writes it
lead() {
  local to now
  to=$(member_id "$1")
  now=$(leader)
  [ "$now" != "$1" ] || return 0
  (
    . "$state/credentials/etcd/etcdctl.env"
    ETCDCTL_ENDPOINTS=https://$(address_of "$now"):2379 "$ROOT/target/etcd/3.5/etcdctl" move-leader "$to"
  )
}

# start_clients [CREDENTIALS]: clients that write, read and watch through all five hosts, whether they are members or not (history.py). They
# read the files in CREDENTIALS for each connection; without it, a copy of those that windlass has now.
start_clients() {
  local h addresses=() credentials=${1:-$scratch/client}
  for h in h1 h2 h3 h4 h5; do addresses+=("$(address_of $h)"); done
  [ $# = 1 ] || cp -r "$state/credentials/etcd" "$credentials"
  mkfifo "$scratch/clients.hold"
  "$ROOT/tests/e2e/history.py" record "$credentials" "$scratch/history" "${addresses[@]}" <"$scratch/clients.hold" &
  clients=$!
  # They end when this is closed, which the end of the case does, too.
  exec 8>"$scratch/clients.hold"
}
# history_fits: ends the clients. Everything that they saw must fit the history that every member has.
history_fits() {
  exec 8>&-
  wait "$clients" || broken "the clients failed"
  rm "$scratch/clients.hold"
  "$ROOT/tests/e2e/history.py" check "$scratch/history" >"$scratch/checked" || { cat "$scratch/checked"; broken "the history does not fit"; }
  cat "$scratch/checked"
  grep -q " $(etcdctl member list | wc -l) members compared" "$scratch/checked" || broken "not every member told its history"
  [ "$(sed -n 's/^history: \([0-9]*\) .*/\1/p' "$scratch/checked")" -gt 20 ] || broken "there were hardly any changes"
  rm -rf "$scratch/client" "$scratch/history"
}
# ask HOST PATH: what the member answers.
ask() { "$ROOT/tests/e2e/history.py" ask "$state/credentials/etcd" "$(address_of "$1")" "$2"; }

# fresh_three_at RELEASE: h1, h2 and h3 as members of 3.5. The etcdctl of Debian comes with the first release, and stays on the hosts.
fresh_three_at() {
  "$ROOT/tests/etcd-binaries" "$1" || broken "there is no etcd $1"
  fresh_five
  members h1 h2 h3
  exits 0
  ETCD=$1 members h1 h2 h3
  exits 0
}
# change COMMAND RELEASE OPTION...: windlass etcd upgrade or downgrade of h1, h2 and h3.
change() {
  local command=$1 release=$2
  shift 2
  windlass etcd "$command" "${change_options[@]}" --bundle "$ROOT/target/etcd/$release" "$@"
}
change_options=(-i "$(inventory_of h1 h2 h3)" -e "etcd_bundle=$ROOT/target/etcd/3.5" --playbooks "$ROOT/playbooks")
# versions_are SERVER CLUSTER: of h1, h2 and h3, which are the members.
versions_are() {
  local h found
  are_members h1 h2 h3
  for h in h1 h2 h3; do
    found=$(ask $h /version)
    grep -q "\"etcdserver\":\"$1\",\"etcdcluster\":\"$2\"" <<<"$found" || broken "$h says $found, not $1 and $2"
  done
}
# killed_while_mixed RELEASE COMMAND: kills windlass etcd upgrade or downgrade when one of the members has the release, and another one has not.
killed_while_mixed() {
  local release=$1 command=$2 run found h
  echo "+ windlass etcd $command (killed when a member has $release)"
  "$WINDLASS" etcd "$command" "${change_options[@]}" --bundle "$ROOT/target/etcd/$release" --yes >"$output" 2>&1 </dev/null &
  run=$!
  while :; do
    found=0
    for h in h1 h2 h3; do ! ask $h /version 2>/dev/null | matches "\"etcdserver\":\"$release\"" || found=$((found + 1)); done
    [ "$found" = 0 ] || break
    kill -0 $run 2>/dev/null || { cat "$output"; broken "it ended before a member had $release"; }
    sleep 0.3
  done
  kill -9 $run
  wait $run || true
  tail -3 "$output"
  [ "$found" -lt 3 ] || broken "all members had $release before it was killed"
}

# killed_at TASK ARGUMENT...: runs windlass, and kills it when it has begun the task.
killed_at() {
  local task=$1 run n=0
  shift
  echo "+ windlass $* (killed at: $task)"
  : >"$output"
  "$WINDLASS" "$@" >"$output" 2>&1 </dev/null &
  run=$!
  until grep -aqF -- ": $task]" "$output"; do
    kill -0 $run 2>/dev/null || { cat "$output"; broken "it ended before: $task"; }
    n=$((n + 1))
    [ $n -lt 1800 ] || { cat "$output"; broken "it never says: $task"; }
    sleep 0.1
  done
  sleep "${after:-0}"
  # The last task may have ended meanwhile.
  kill -9 $run 2>/dev/null || echo "(it had ended)"
  wait $run || true
  tail -5 "$output"
}
