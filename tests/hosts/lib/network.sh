# shellcheck shell=bash
# network.sh: a bridge, and for every host a network namespace with a link to it.

bridge() { echo "${prefix}br"; }
link_of() { echo "${prefix}v${1#h}"; }
netns_of() { echo "$prefix-$1"; }
address_of() { echo "$subnet.$((10 + ${1#h}))"; }
aliases_of() { local k; for k in $(seq "$aliases"); do echo "$subnet.$((40 + (${1#h} - 1) * aliases + k))"; done; }

# Finds a prefix and a subnet that no other set uses, unless given; two sets may come up at once, so under a lock.
choose_network() {
  local i
  exec 7>/run/lock/windlass-hosts
  flock 7
  if [ -z "$prefix" ]; then
    for i in $(seq 0 99); do
      prefix=wl$i
      [ -e "/sys/class/net/$(bridge)" ] || break
    done
  fi
  if [ -z "$subnet" ]; then
    for i in $(seq 80 199); do
      subnet=10.77.$i
      [ -n "$(ip -4 route show "$subnet.0/24")" ] || break
    done
  fi
  [[ $prefix =~ ^[a-z][a-z0-9]{0,5}$ ]] || fail "--prefix $prefix: up to six small letters and digits"
  [[ $subnet =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "--subnet $subnet: three numbers, as in 10.77.80"
  ip link add "$(bridge)" type bridge || fail "the prefix $prefix is in use"
  ip link set "$(bridge)" alias "$state" up # whose it is, for remove_network
  ip addr add "$subnet.1/24" dev "$(bridge)"
  remember_settings
  exec 7>&-
  # Where bridged frames go through iptables (a machine with Docker), its FORWARD chain would drop them.
  iptables -I FORWARD -i "$(bridge)" -o "$(bridge)" -m comment --comment "$prefix-hosts" -j ACCEPT 2>/dev/null || true
}

plug_in() {
  local h=$1 ns link alias
  ns=$(netns_of "$h") link=$(link_of "$h")
  ip netns add "$ns"
  ip link add "$link" type veth peer name eth0 netns "$ns"
  ip link set "$link" master "$(bridge)" up
  ip -n "$ns" link set lo up
  ip -n "$ns" addr add "$(address_of "$h")/24" dev eth0
  for alias in $(aliases_of "$h"); do ip -n "$ns" addr add "$alias/24" dev eth0; done
  ip -n "$ns" link set eth0 up
  ip -n "$ns" route add default via "$subnet.1"
}

# Removes what kernels remember of the host's link. A search that began while the host was off may be about to fail, and
# would answer "No route to host" after the host is back. The host's own kernel is this machine's, so it remembers, too.
forget_neighbours() {
  local h other
  h=$(address_of "$1")
  ip neigh flush dev "$(bridge)" to "$h" 2>/dev/null || true
  for other in $(host_names); do
    if [ "$other" = "$1" ]; then ip -n "$(netns_of "$other")" neigh flush all 2>/dev/null || true
    else ip -n "$(netns_of "$other")" neigh flush to "$h" 2>/dev/null || true; fi
  done
}

# An old set's settings may name an object that belongs to a new set now: it is kept.
remove_network() {
  local ns link
  [ "$(cat "/sys/class/net/$(bridge)/ifalias" 2>/dev/null)" = "$state" ] || return 0
  for ns in $(ip netns list | awk '{print $1}' | grep "^$prefix-h[0-9]*\$"); do ip netns del "$ns"; done
  for link in $(ip -o link show type veth | awk -F'[ :@]+' '{print $2}' | grep "^${prefix}v[0-9]*\$"); do
    ip link del "$link" 2>/dev/null || true
  done
  ip link del "$(bridge)" 2>/dev/null || true
  while iptables -D FORWARD -i "$(bridge)" -o "$(bridge)" -m comment --comment "$prefix-hosts" -j ACCEPT 2>/dev/null; do :; done
}
