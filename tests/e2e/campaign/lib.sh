# shellcheck shell=bash
# lib.sh: what the kinds of attack share besides ../lib.sh.

# pick LIMIT: sets $picked to a number from 0 to LIMIT-1. Not by a subshell, in which the sequence would not move on.
pick() { picked=$((RANDOM % $1)); }
# one_of WORD...: sets $picked to one of them.
one_of() {
  pick $#
  shift "$picked"
  picked=$1
}

# All hosts on, connected and without extra file systems.
whole_hosts() {
  local h
  for h in h1 h2 h3; do
    hosts resume $h
    hosts heal $h
    hosts start $h
  done
}

# A healthy cluster of three members with its own settings; created only if there is none.
a_healthy_cluster() {
  whole_hosts
  if [ -e "$state/credentials/etcd/etcdctl.env" ]; then
    etcd_playbook
    if [ "$code" = 0 ] && (healthy) >/dev/null; then return; fi
  fi
  fresh
  etcd_playbook
  exits 0
  healthy
}

# Writes one key after the other until it is stopped; $confirmed lists the writes that etcd has confirmed.
writer_start() {
  confirmed=$scratch/confirmed
  : >"$confirmed"
  (
    n=0
    while :; do
      n=$((n + 1))
      key=campaign/$SEED/$BASHPID/$n
      if etcdctl put --command-timeout=2s "$key" "$n" >/dev/null 2>&1; then echo "$key $n" >>"$confirmed"; fi
      sleep 0.1
    done
  ) &
  writer=$!
}
# writer_stop: no confirmed write may be lost.
writer_stop() {
  kill "$writer" 2>/dev/null || true
  wait "$writer" 2>/dev/null || true
  etcdctl get --prefix "campaign/$SEED/" | paste -d' ' - - | sort >"$scratch/there"
  sort "$confirmed" | comm -23 - "$scratch/there" >"$scratch/lost"
  [ ! -s "$scratch/lost" ] || broken "$(wc -l <"$scratch/lost") of $(wc -l <"$confirmed") confirmed writes are lost"
  echo "$(wc -l <"$confirmed") confirmed writes, none lost"
  etcdctl del --prefix "campaign/$SEED/" >/dev/null
}

# in_the_background FILE [OPTION]...: the playbook etcd.yml; its output in FILE, its process in $run.
in_the_background() {
  local file=$1
  shift
  : >"$file"
  "$WINDLASS" playbook -i "$inventory" -e "etcd_bundle=$ROOT/target/etcd/3.5" "$@" "$ROOT/playbooks/etcd.yml" >"$file" 2>&1 </dev/null &
  run=$!
}
# after_lines FILE NUMBER: waits until FILE has as many lines or the run has ended.
after_lines() { while [ "$(wc -l <"$1")" -lt "$2" ] && kill -0 "$run" 2>/dev/null; do sleep 0.02; done; }
# ends_within SECONDS: the run ends by itself; its exit code in $code.
ends_within() {
  local n=0
  while kill -0 "$run" 2>/dev/null; do
    n=$((n + 1))
    [ $n -lt $(($1 * 10)) ] || { kill -9 "$run"; broken "windlass did not end within $1 seconds"; }
    sleep 0.1
  done
  code=0
  wait "$run" || code=$?
}

# The same settings again: everything converges, and a second run finds nothing to do.
converges() {
  etcd_playbook "$@"
  exits 0
  healthy
  etcd_playbook "$@"
  exits 0
  nothing_changed
}
