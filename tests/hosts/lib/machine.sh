# shellcheck shell=bash
# machine.sh: a host's power switch. systemd-nspawn boots its disk in its network namespace; nothing here needs
# systemd, machined or D-Bus on this side.

# The cgroup hierarchies that the systemd in a host works in: v2, or v1 and hybrid.
cgroup_roots() {
  local name
  if [ -e /sys/fs/cgroup/cgroup.procs ]; then
    echo /sys/fs/cgroup
  else
    for name in systemd unified; do
      [ ! -e "/sys/fs/cgroup/$name/cgroup.procs" ] || echo "/sys/fs/cgroup/$name"
    done
  fi
}

# CPU accounting of v1, for measurements.
accounting_root() { [ ! -e /sys/fs/cgroup/cpuacct/cpuacct.usage ] || echo /sys/fs/cgroup/cpuacct; }

# A v1 system without the name=systemd hierarchy gets one.
prepare_cgroups() {
  [ ! -e /sys/fs/cgroup/cgroup.procs ] && [ ! -e /sys/fs/cgroup/systemd/cgroup.procs ] || return 0
  mountpoint -q /sys/fs/cgroup || mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
  mkdir -p /sys/fs/cgroup/systemd
  mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
}

# Every systemd watches a dozen things; what this machine allows by default is enough for six hosts or so. Only raised.
prepare_limits() {
  local at=/proc/sys/fs/inotify/max_user_instances
  [ "$(cat "$at")" -ge 4096 ] || echo 4096 >"$at" || say "hosts: cannot raise $at: many hosts may not start"
}

remove_cgroups() {
  local at
  for at in $(cgroup_roots) $(accounting_root); do
    [ ! -d "$at/$prefix" ] || find "$at/$prefix" -depth -type d -exec rmdir {} \; 2>/dev/null || true
  done
}

# The process id of the host's systemd.
leader_of() {
  local nspawn
  nspawn=$(cat "$state/$1/nspawn.pid" 2>/dev/null) || return 1
  tr ' ' '\n' <"/proc/$nspawn/task/$nspawn/children" 2>/dev/null | head -1 | grep .
}

# Starts nspawn under a loop of its own: exit code 133 is a reboot asked for from inside.
boot() {
  local h=$1
  attach_disk "$h"
  ip link set "$(link_of "$h")" up
  forget_neighbours "$h"
  rm -f "$state/$h/ended"
  # shellcheck disable=SC2016,SC2046
  setsid bash -c '
    h=$1 d=$2 prefix=$3
    shift 3
    echo $$ >"$d/loop.pid"
    while :; do
      (
        for at in "$@"; do mkdir -p "$at/$prefix/$h" && echo $BASHPID >"$at/$prefix/$h/cgroup.procs"; done
        echo $BASHPID >"$d/nspawn.pid"
        export SYSTEMD_NSPAWN_API_VFS_WRITABLE=network
        exec systemd-nspawn -q -b -D "$d/root" --machine="$prefix-$h" --hostname="$h" --register=no --keep-unit \
          --network-namespace-path="/run/netns/$prefix-$h" --capability=all --resolv-conf=off --timezone=off \
          --link-journal=no --console=pipe --system-call-filter="add_key keyctl bpf perf_event_open"
      ) </dev/null >>"$d/console.log" 2>&1
      [ $? = 133 ] || break
    done
    rm -f "$d/nspawn.pid" "$d/loop.pid"
    : >"$d/ended"' hosts "$h" "$state/$h" "$prefix" $(cgroup_roots) $(accounting_root) \
    </dev/null >/dev/null 2>&1 7>&- 8>&- &
}

# A host that could not begin to boot, as may happen on a busy machine, is started again.
wait_for_sshd() {
  local h=$1 again=2 _
  for _ in $(seq 6000); do
    if (: >"/dev/tcp/$(address_of "$h")/22") 2>/dev/null; then return 0; fi
    sleep 0.05
    if [ -e "$state/$h/ended" ] && [ "$again" -gt 0 ]; then
      say "hosts: $h did not start: $(tail -1 "$state/$h/console.log")"
      again=$((again - 1))
      boot "$h"
    fi
  done
  tail -5 "$state/$h/console.log" >&2
  fail "$h does not answer on port 22; its console is $state/$h/console.log"
}

wait_for_systemd() {
  local h=$1 status=''
  status=$(inside "$h" systemctl is-system-running --wait 2>/dev/null) || true
  [ "$status" = running ] || say "hosts: $h is $status: $(inside "$h" systemctl --failed --no-legend --plain 2>/dev/null | awk '{print $1}' | xargs)"
}

# Runs a command in the host as root, with an environment as after a login.
inside() {
  local h=$1 pid
  shift
  pid=$(leader_of "$h") || fail "$h is not running"
  nsenter -t "$pid" -a -- env -i HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

# Whether process $1 still lives, for at most $2 times 20 ms.
ends_within() {
  local pid=$1 times=$2
  while [ "$times" -gt 0 ]; do
    kill -0 "$pid" 2>/dev/null || return 0
    sleep 0.02
    times=$((times - 1))
  done
  return 1
}

# Like pulling the plug: a pid namespace dies with its init. The link goes first, or the kernel would still say
# goodbye on every connection.
power_off() {
  local h=$1 pid
  ip link set "$(link_of "$h")" down 2>/dev/null || true
  if pid=$(cat "$state/$h/loop.pid" 2>/dev/null); then kill -9 "$pid" 2>/dev/null || true; fi
  if pid=$(leader_of "$h"); then kill -9 "$pid" 2>/dev/null || true; fi
  if pid=$(cat "$state/$h/nspawn.pid" 2>/dev/null); then
    ends_within "$pid" 200 || kill -9 "$pid" 2>/dev/null || true
  fi
  rm -f "$state/$h/loop.pid" "$state/$h/nspawn.pid"
}

# Orderly: nspawn passes SIGTERM on as the host's systemd expects it.
shut_down() {
  local h=$1 pid
  pid=$(cat "$state/$h/nspawn.pid" 2>/dev/null) || return 0
  kill -TERM "$pid" 2>/dev/null || true
  ends_within "$pid" 1000 || true
  power_off "$h"
}
