# shellcheck shell=bash
# settings.sh: where things are, what they are called, and which tools are needed.
root=$(cd "$here/../.." && pwd)
state=${WINDLASS_HOSTS_STATE:-$root/target/hosts}
cache=${WINDLASS_HOSTS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/windlass/hosts}
mirror=${WINDLASS_DEBIAN_MIRROR:-http://deb.debian.org/debian}
prefix='' subnet='' aliases=0 python=no count=0

say() { printf '%s\n' "$*" >&2; }
fail() { say "hosts: $*"; exit 1; }

# Takes up the settings of a set that is there.
settle() {
  mkdir -p "$state"
  state=$(cd "$state" && pwd)
  [ -e "$state/settings" ] || fail "no hosts in $state: run \`hosts up N\` first"
  # shellcheck source=/dev/null
  . "$state/settings"
}

# For `up`: the state directory, and what an earlier set there was called.
settle_new() {
  [ "$(id -u)" = 0 ] || fail "needs root: network namespaces and mounts"
  mkdir -p "$state"
  state=$(cd "$state" && pwd)
  need_tools
}

remember_settings() {
  printf '%s=%q\n' prefix "$prefix" subnet "$subnet" aliases "$aliases" python "$python" count "$count" >"$state/settings"
}

# Installs missing tools with apt, as a bare Debian has none of them.
need_tools() {
  local missing=() pair
  for pair in systemd-nspawn:systemd-container debootstrap:debootstrap ip:iproute2 tc:iproute2 ssh:openssh-client \
    ssh-keygen:openssh-client iptables:iptables nsenter:util-linux; do
    command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "hosts: installing ${missing[*]}"
  { apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "${missing[@]}"; } \
    >"$state/apt.log" 2>&1 || { tail -20 "$state/apt.log" >&2; fail "cannot install ${missing[*]}"; }
}

host_names() { local i; for i in $(seq "$count"); do echo "h$i"; done; }

known() { [ -d "$state/$1" ] && [[ $1 =~ ^h[0-9]+$ ]] || fail "there is no host $1 (there are $(host_names | xargs))"; }
