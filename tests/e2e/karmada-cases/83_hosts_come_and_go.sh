# Takes its turn: every third day, with stand-ins.
. "$ROOT/tests/e2e/karmada-lib.sh"
fresh
with_load_balancer
karmada site
exits 0

# A fourth host, without etcd, comes and serves; what runs on the others is not restarted.
three=$karmada_inventory
karmada_inventory=$state/karmada-four.ini
{ grep '^h4 ' "$inventory"; sed '/^\[karmada_control_plane:children\]/i [karmada_control_plane]\nh4\n' "$three"; } >"$karmada_inventory"
# Not with older programs than the others have, which a limit hides.
karmada karmada --limit h4 -e "karmada_bundle=${WINDLASS_BUNDLE_BEFORE:-$WINDLASS_BUNDLE/none}"
exits 2
[ -z "${WINDLASS_BUNDLE_BEFORE:-}" ] || says 'scheduler on h1 is .*, but the bundle has Karmada'
on h4 test ! -e /opt/windlass
since() { for h in h1 h2 h3; do for c in $components; do on "$h" "systemctl show -p ExecMainStartTimestampMonotonic karmada-$c" | sed "s/^/$h $c /"; done; done; }
since >"$scratch/since"
begun=$SECONDS
client_begins
karmada karmada
exits 0
echo "a host came in $((SECONDS - begun)) s"
nobody_noticed
[ "$(balanced h1 h4)" = UP ] || broken "the load balancer does not lead to h4"
kubectl_at h4 get clusters
since | diff "$scratch/since" - || broken "something was restarted"

# And leaves again.
karmada remove-host h9
exits 2
says 'h9 is not a host of the groups'
client_begins
karmada remove-host h4
exits 0
karmada_inventory=$three
karmada karmada
exits 0
nobody_noticed
! tree h4 | grep -E '/(opt|etc)/windlass|karmada' | grep -v '/var/log/' || broken "something is left on h4"
found=$(balanced h1 h4)
[ -z "$found" ] || broken "the load balancer still lists h4"
since | diff "$scratch/since" - || broken "something was restarted"
[ ! -e "$state/credentials/karmada/hosts/h4" ] || broken "the keys of h4 are still here"

# A host of the three dies for good, and a new machine takes its place under the same name.
karmada_inventory=$state/karmada-four.ini
karmada karmada
exits 0
client_begins
sleep 5
hosts kill h4
karmada_inventory=$three
karmada karmada
exits 0
failed_for_at_most 10
hosts reset h4
karmada_inventory=$state/karmada-four.ini
karmada karmada
exits 0
[ "$(balanced h1 h4)" = UP ] || broken "the load balancer does not lead to the new h4"
karmada_inventory=$three
