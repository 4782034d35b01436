# Needs Karmada's own programs.
# No host has a default route, nor has windlass, which runs in a network of its own. Counted are packets that left for
# others (by the packet filter) and what was tried to be sent to where no route leads (by the kernel).
. "$ROOT/tests/e2e/karmada-lib.sh"
fresh
# shellcheck disable=SC1091  # of the hosts, when they are up
. "$state/settings"
namespace=$prefix-here
link=${prefix}here
alone() { ip netns exec "$namespace" "$@"; }
remove_namespace() { ip netns del "$namespace" 2>/dev/null || true; ip link del "$link" 2>/dev/null || true; }
trap 'remove_namespace; rm -rf "$scratch"' EXIT
remove_namespace
ip netns add "$namespace"
ip link add "$link" type veth peer name eth0 netns "$namespace"
ip link set "$link" master "${prefix}br" up
ip -n "$namespace" link set lo up
ip -n "$namespace" addr add "$subnet.250/24" dev eth0
ip -n "$namespace" link set eth0 up
namespaces="$namespace $prefix-h1 $prefix-h2 $prefix-h3"
for n in $namespaces; do
  ip -n "$n" route del default 2>/dev/null || true
  found=$(ip -n "$n" route show default)
  [ -z "$found" ] || broken "$n has a default route"
  ip netns exec "$n" iptables -N others
  ip netns exec "$n" iptables -A others -j REJECT
  ip netns exec "$n" iptables -A OUTPUT ! -o lo ! -d "$subnet.0/24" -j others
done
no_routes() { ip netns exec "$1" awk '/^Ip: [0-9]/ {print $13}' /proc/net/snmp; }
left() { ip netns exec "$1" iptables -L others -v -x -n | awk '/REJECT/ {print $1}'; }
# The counters count.
alone timeout 2 bash -c ': >/dev/tcp/203.0.113.7/80' 2>/dev/null && broken "there is a way out"
[ "$(no_routes "$namespace")" -gt 0 ] || broken "the kernel does not count what has no route"
for n in $namespaces; do eval "before_${n##*-}=$(no_routes "$n")"; done

real=$WINDLASS
printf '#!/bin/sh\nexec ip netns exec %s %s "$@"\n' "$namespace" "$real" >"$scratch/windlass"
chmod +x "$scratch/windlass"
WINDLASS=$scratch/windlass
karmada site --offline
exits 0
karmada site --offline
exits 0
nothing_changed
karmada status --offline
exits 0
for n in $namespaces; do
  before=before_${n##*-}
  echo "$n: $(left "$n") packets left for others, $(($(no_routes "$n") - ${!before})) sends had no route"
  [ "$(left "$n")" = 0 ] || broken "$n sent packets to others"
  [ "$(no_routes "$n")" = "${!before}" ] || broken "$n tried to send to where no route leads"
done
