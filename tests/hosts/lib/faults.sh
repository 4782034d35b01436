# shellcheck shell=bash
# faults.sh: what can happen to a host. Each verb gets the host's name first.

verb_start() {
  ! leader_of "$1" >/dev/null || return 0
  boot "$1"
  wait_for_sshd "$1"
}
verb_stop() { shut_down "$1"; }
verb_kill() { power_off "$1"; }

# A fresh disk, and a network without faults.
verb_reset() {
  power_off "$1"
  ip netns exec "$(netns_of "$1")" iptables -F INPUT
  tc qdisc del dev "$(link_of "$1")" root 2>/dev/null || true
  blank_disk "$1"
  furnish "$1"
  boot "$1"
  wait_for_sshd "$1"
  wait_for_systemd "$1"
}

# Freezes or thaws all processes of the host at once: TCP still accepts, nobody answers.
freeze() {
  local at
  for at in $(cgroup_roots); do
    if [ -e "$at/$prefix/$1/cgroup.freeze" ]; then
      echo "$2" >"$at/$prefix/$1/cgroup.freeze"
      return
    fi
  done
  fail "this machine's cgroups cannot freeze (no v2 hierarchy)"
}
verb_pause() { freeze "$1" 1; }
verb_resume() { freeze "$1" 0; }

# Packets vanish, nobody sends a reset.
verb_cut() { ip link set "$(link_of "$1")" down; }
verb_heal() {
  ip link set "$(link_of "$1")" up
  forget_neighbours "$1"
}

# deaf ACTION HOST OTHER: the rule by which a host does not hear another one.
deaf() { ip netns exec "$(netns_of "$2")" iptables "$1" INPUT -s "$(address_of "$3")" -j DROP; }
verb_split() {
  known "${2:?split: from which other host?}"
  deaf -I "$1" "$2"
  deaf -I "$2" "$1"
}
# Of two that hear each other, there is nothing to undo.
verb_join() {
  known "${2:?join: with which other host?}"
  ! deaf -C "$1" "$2" 2>/dev/null || deaf -D "$1" "$2"
  ! deaf -C "$2" "$1" 2>/dev/null || deaf -D "$2" "$1"
}

verb_slow() { tc qdisc replace dev "$(link_of "$1")" root tbf rate "${2:?slow: which rate?}" burst 64k latency 200ms; }
verb_fast() { tc qdisc del dev "$(link_of "$1")" root; }

# Further file systems, gone after a restart of the host.
verb_shrink() {
  inside "$1" mkdir -p "${2:?shrink: which directory?}"
  inside "$1" mount -t tmpfs -o "size=${3:?shrink: which size?},mode=755" small "$2"
}
verb_noexec() {
  inside "$1" mount --bind "${2:?noexec: which directory?}" "$2"
  inside "$1" mount -o remount,bind,noexec "$2"
}
verb_unmount() { inside "$1" umount "${2:?unmount: which directory?}"; }

verb_exec() {
  [ $# -gt 1 ] || fail "exec: which command?"
  inside "$@"
}

# Proportional set size of all processes of the host.
verb_memory() {
  local at pids
  at=$(cgroup_roots | tail -1)
  pids=$(find "$at/$prefix/$1" -name cgroup.procs -exec cat {} + 2>/dev/null)
  for pid in $pids; do cat "/proc/$pid/smaps_rollup" 2>/dev/null; done |
    awk '/^Pss:/ {sum += $2} END {printf "%.1f MiB\n", sum / 1024}'
}
