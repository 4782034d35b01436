# shellcheck shell=bash
# Takes long: what goes wrong while the version of etcd changes, and while clients read and write: a kill where no member has changed, or all have;
# a member that loses its data in the middle.
. "$ROOT/tests/e2e/etcd-lib.sh"
"$ROOT/tests/etcd-binaries" 3.6.15 || broken "there is no etcd to upgrade to"
fresh_three_at 3.5.34
start_clients

# Killed when all members have changed: the same command has to see the end.
killed_at 'Wait until the cluster has the version of its members' etcd upgrade "${change_options[@]}" --bundle "$ROOT/target/etcd/3.6.15" --yes
change upgrade 3.6.15 --yes
exits 0
versions_are 3.6.15 3.6.0

# Killed when a downgrade is enabled, and no member has changed.
killed_at 'Wait until every member has converted its data' etcd downgrade "${change_options[@]}" --bundle "$ROOT/target/etcd/3.5.34" --yes
etcd_members check h1,h2,h3
says '^versions +warning +3[.]6[.]15, downgrade to 3[.]5[.]0 enabled'
change upgrade 3.6.15 --yes
exits 0
versions_are 3.6.15 3.6.0
change downgrade 3.5.34 --yes
exits 0
versions_are 3.5.34 3.5.0
# What is stopped after a downgrade is what was installed, whatever is left in its database.
on h2 systemctl stop etcd
ETCD=3.5.34 members h1 h2 h3
exits 0
versions_are 3.5.34 3.5.0

# An upgrade that is given up before a member has the newer version: nothing is left of the small snapshot-count.
killed_at 'Wait until the process has been replaced' etcd upgrade "${change_options[@]}" --bundle "$ROOT/target/etcd/3.6.15" --yes
are_members h1 h2 h3
small() { on "$1" 'ls /run/systemd/system/etcd.service.d/ 2>/dev/null; tr "\0" "\n" </proc/$(systemctl show --property MainPID --value etcd)/environ | grep ETCD_SNAPSHOT_COUNT || true'; }
found=$(for h in h1 h2 h3; do small "$h"; done)
grep -q ETCD_SNAPSHOT_COUNT <<<"$found" || broken "no member had a small snapshot-count when it was killed"
change downgrade 3.5.34 --yes
exits 0
found=$(for h in h1 h2 h3; do small "$h"; done)
[ -z "$found" ] || broken "the small snapshot-count is left: $found"
are_members h1 h2 h3
etcd_members defrag h1,h2,h3 --yes
exits 0

# A member that loses its data in the middle is removed, and joins with the newer version.
killed_while_mixed 3.6.15 upgrade
lost=
for h in h1 h2 h3; do ! ask $h /version | matches '"etcdserver":"3.5.34"' || lost=$h; done
[ -n "$lost" ] || broken "all members have 3.6.15"
on "$lost" 'systemctl stop etcd; rm -rf /var/lib/etcd/data/member'
change upgrade 3.6.15 --yes
exits 2
etcd_members remove-member h1,h2,h3 "$lost" --allow-even --abandon --yes
exits 0
change upgrade 3.6.15 --yes
exits 0
versions_are 3.6.15 3.6.0
history_fits
