# shellcheck shell=bash
# lib.sh: what every case uses. A case is a script that fails at its first command that does.
state=$WINDLASS_HOSTS_STATE
inventory=$state/inventory.ini
scratch=$(mktemp -d)
trap 'rm -rf "$scratch" || true' EXIT
output=$scratch/output
# Variables of these tests alone, of which windlass would say that it does not know them.
export -n WINDLASS_CASES WINDLASS_HOSTS WINDLASS_BUNDLE WINDLASS_BUNDLE_BEFORE WINDLASS_STAND_INS
# Runs are recorded beside the hosts, and not in the home directory.
export WINDLASS_RUNS=true WINDLASS_RUNS_DIRECTORY=$state/runs
# Every task, for logs and for what cases look for.
export WINDLASS_OUTPUT=human

hosts() { "$ROOT/tests/hosts/hosts" "$@"; }
broken() { echo "e2e: $*"; exit 1; }

# cannot_run REASON: ends a case that this machine has not what is needed for; an error where every test has to run.
cannot_run() {
  [ -z "${TESTS_COMPLETE:-}" ] || broken "the case cannot run: $*"
  echo "skipped: $*"
  exit 0
}

# Fresh disks for all three, and no credentials of an earlier cluster.
fresh() {
  local h resets=()
  rm -rf "$state/credentials"
  for h in h1 h2 h3; do
    hosts reset "$h" &
    resets+=($!)
  done
  for h in "${resets[@]}"; do wait "$h" || broken "a host does not come back"; done
}

# Runs windlass; its words are shown in the log and kept in $output, its exit code in $code.
windlass() {
  echo "+ windlass $*"
  code=0
  "$WINDLASS" "$@" >"$output" 2>&1 </dev/null || code=$?
  cat "$output"
  echo "+ exit code $code"
}

# at_question QUESTION COMMAND ANSWER OPTION...: runs windlass on a terminal. When it asks, runs the command, then types the answer.
at_question() {
  local question=$1 command=$2 answer=$3 run
  shift 3
  echo "+ windlass $*"
  mkfifo "$scratch/keys"
  # Before it is looked at: a busy machine may open it for the run only later.
  : >"$output"
  SHELL=/bin/bash script -qefc "$(printf '%q ' "$WINDLASS" "$@")" /dev/null <"$scratch/keys" >"$output" 2>&1 &
  run=$!
  exec 7>"$scratch/keys"
  until grep -aqF -- "$question" "$output"; do
    kill -0 $run 2>/dev/null || { cat "$output"; broken "it ends without asking: $question"; }
    sleep 0.2
  done
  echo "+ meanwhile: $command"
  "$command"
  echo "$answer" >&7
  code=0
  wait $run || code=$?
  exec 7>&-
  rm "$scratch/keys"
  cat "$output"
  echo "+ exit code $code"
}

# The playbook etcd.yml, with etcd $ETCD (3.5 unless said otherwise).
etcd_playbook() { windlass playbook -i "${etcd_inventory:-$inventory}" -e "etcd_bundle=$ROOT/target/etcd/${ETCD:-3.5}" "$@" "$ROOT/playbooks/etcd.yml"; }

# matches GREP-ARGUMENTS: whether its input has a line that matches. `grep -q` ends at the first one, and with pipefail a program that
# writes more is then a failure: `! secrets | grep -q` would pass with the secret there.
matches() { [ "$(grep -ac "$@")" != 0 ]; }
exits() { [ "$code" = "$1" ] || broken "exit code $code, not $1"; }
says() { grep -aqE -- "$1" "$output" || broken "it does not say: $1"; }
# in_no_record SECRET: the record of no run holds it. The records are searched as text: in the database they are compressed.
in_no_record() {
  "$ROOT/tests/e2e/records" "$state/runs" >"$scratch/records"
  grep -q '"event":' "$scratch/records" || broken "the records of runs cannot be searched"
  ! grep -qF -- "$1" "$scratch/records" || broken "a secret is in the record of a run"
}
does_not_say() { ! grep -aqE -- "$1" "$output" || broken "it says: $1"; }

# recap HOST WORD NUMBER: the recap's number for a host.
recap() { grep -aqE "^$1 .*: ok=.*\b$2=$3\b|^$1 .*: $2=$3\b" "$output" || broken "the recap of $1 has no $2=$3: $(grep -aE "^$1 .*: ok=" "$output")"; }
nothing_changed() { local h; for h in h1 h2 h3; do recap "$h" changed 0; recap "$h" failed 0; recap "$h" unreachable 0; done; }

# etcdctl as the admin on this machine, by the file that the role left.
# shellcheck disable=SC1090  # a run writes it
etcdctl() {
  (
    . "$state/credentials/${CLUSTER:-etcd}/etcdctl.env"
    # On a busy machine its own 5 and 2 seconds are too short. It refuses a flag and its variable together.
    case " $* " in *--command-timeout* | " endpoint "*) ;; *) export ETCDCTL_COMMAND_TIMEOUT=20s ;; esac
    case " $* " in *--dial-timeout*) ;; *) export ETCDCTL_DIAL_TIMEOUT=8s ;; esac
    "$ROOT/target/etcd/3.5/etcdctl" "$@"
  )
}
# put_through_h1 KEY VALUE: tries until h1 accepts the write, for a minute or so.
# shellcheck disable=SC1091  # a run writes it
put_through_h1() {
  for _ in $(seq 60); do
    (
      . "$state/credentials/etcd/etcdctl.env"
      ETCDCTL_ENDPOINTS=https://$(sed -n 's/^h1 ansible_host=//p' "$inventory"):2379 "$ROOT/target/etcd/3.5/etcdctl" put "$@"
    ) && return
    sleep 1
  done
  broken "h1 accepts no write"
}
healthy() {
  local count
  well
  etcdctl endpoint health || broken "the cluster is not healthy"
  count=$(etcdctl member list | grep -c started)
  [ "$count" = "${1:-3}" ] || broken "$count members are started, not ${1:-3}"
}

# well: every member answers, within five minutes.
well() { for _ in $(seq 300); do ! etcdctl endpoint health >/dev/null 2>&1 || return 0; sleep 1; done; broken "the cluster is not well after five minutes"; }
# a_cluster: the three hosts are a cluster of etcd 3.5 that is well: the one that is there, or else a new one.
a_cluster() {
  if [ -e "$state/credentials/etcd/etcdctl.env" ] && etcdctl endpoint health && [ "$(etcdctl endpoint status | grep -c 3.5.16)" = 3 ]; then
    return
  fi
  fresh
  etcd_playbook
  exits 0
  healthy
}
# inventory_of HOST...: an inventory of these hosts alone, beside the credentials, in the file that it prints.
inventory_of() {
  local h pattern=
  for h in "$@"; do pattern+="|$h"; done
  grep -vE '^h[0-9]+( |$)' "$inventory" >"$state/few.ini"
  grep -E "^(${pattern#|})( |\$)" "$inventory" >>"$state/few.ini"
  echo "$state/few.ini"
}
# What members would be reached by, trust and run: as one text for all hosts.
members_files() { local h; for h in h1 h2 h3; do on "$h" 'sha256sum /etc/etcd/pki/* /etc/etcd/*.env; readlink /opt/windlass/etcd/etcd/current'; done; }
starts() { local h; for h in h1 h2 h3; do started_at "$h"; done; }

# The disk of a host as it differs from the template. What windlass itself may leave is left out: its cache directory of
# the login user.
tree() { hosts tree "$1" | grep -v -E '^\./(root|home/[a-z]+)/\.cache(/| )'; }
trees() { local h; for h in h1 h2 h3; do echo "== $h"; tree "$h"; done; }
same_trees() { diff "$1" "$2" || broken "the hosts' disks differ"; }

# on HOST COMMAND LINE: as root, without SSH.
on() { local h=$1; shift; hosts exec "$h" sh -c "$*"; }

leader() {
  etcdctl endpoint status -w json | tr '{}' '\n' >"$scratch/status"
  local id
  id=$(grep -o '"leader":[0-9]*' "$scratch/status" | head -1 | cut -d: -f2)
  etcdctl member list -w json | tr '{}' '\n' | grep "\"ID\":$id," | grep -o '"name":"[^"]*"' | cut -d'"' -f4
}

# When the etcd of a host was started, in microseconds since the machine started.
started_at() { on "$1" systemctl show -p ExecMainStartTimestampMonotonic --value etcd; }

# windlass apply of the hosts of the group etcd, with etcd $ETCD (3.5 unless said otherwise).
apply_arguments() { printf '%s\n' -i "$inventory" -e "etcd_bundle=$ROOT/target/etcd/${ETCD:-3.5}" --playbooks "$ROOT/playbooks"; }
applied() { local a; mapfile -t a < <(apply_arguments); windlass apply "${a[@]}" --yes "$@"; }
planned() { local a; mapfile -t a < <(apply_arguments); windlass plan "${a[@]}" "$@"; }
# in_background FILE ARGUMENT...: an apply in the background; its output is in FILE, its process in $holder.
in_background() {
  local a file=$1
  shift
  mapfile -t a < <(apply_arguments)
  : >"$file"
  "$WINDLASS" apply "${a[@]}" --yes "$@" >"$file" 2>&1 </dev/null &
  holder=$!
}
# until_it_says FILE WORDS: waits for them, for ten minutes.
until_it_says() {
  local n=0
  until grep -aqE -- "$2" "$1"; do
    n=$((n + 1))
    [ $n -lt 6000 ] || { cat "$1"; broken "it never says: $2"; }
    sleep 0.1
  done
}
# What an etcd that runs writes without being asked, and the times at which a lock was heard of, are no change.
settled_trees() { trees | grep -v -E '^\./var/(lib/etcd/data|log|lib/systemd)(/| )|/journal(/| )|/sessions(/| )|\./run/'; }
lock_of() { on "$1" cat /var/lib/windlass/karmada/lock; }
# no_sessions HOST: no shell of a run is known beside the lock; the last ones take a moment to end.
no_sessions() {
  local n=0
  while [ -n "$(on "$1" ls /var/lib/windlass/karmada/sessions)" ]; do
    n=$((n + 1))
    [ $n -lt 600 ] || broken "sessions are left on $1"
    sleep 0.2
  done
}
