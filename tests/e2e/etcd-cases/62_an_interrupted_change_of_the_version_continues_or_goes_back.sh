# shellcheck shell=bash
# Takes long: windlass is killed while members have different versions of etcd, and clients read and write meanwhile.
. "$ROOT/tests/e2e/etcd-lib.sh"
"$ROOT/tests/etcd-binaries" 3.6.15 || broken "there is no etcd to upgrade to"
fresh_three_at 3.5.34
versions_are 3.5.34 3.5.0
start_clients

# Killed while the first member writes a raft snapshot: all still have the version before.
killed_at 'Wait until the process has been replaced' etcd upgrade "${change_options[@]}" --bundle "$ROOT/target/etcd/3.6.15" --yes
versions_are 3.5.34 3.5.0
windlass apply -i "$(inventory_of h1 h2 h3)" -e "etcd_bundle=$ROOT/target/etcd/3.6.15" --playbooks "$ROOT/playbooks" --yes
exits 1
says 'run windlass etcd upgrade'
killed_while_mixed 3.6.15 upgrade
windlass status -i "$(inventory_of h1 h2 h3)" --playbooks "$ROOT/playbooks"
says 'windlass etcd upgrade'
# It goes back: the cluster still has the version before.
change downgrade 3.5.34 --yes
exits 0
versions_are 3.5.34 3.5.0
killed_while_mixed 3.6.15 upgrade
# It continues. Every member has its raft snapshot, and nothing is left of the small snapshot-count.
change upgrade 3.6.15 --yes
exits 0
versions_are 3.6.15 3.6.0
for h in h1 h2 h3; do
  on $h 'test ! -e /run/systemd/system/etcd.service.d/windlass-raft-snapshot.conf' || broken "the small snapshot-count of $h is left"
done

# A downgrade that is under way is taken back, or completed.
killed_while_mixed 3.5.34 downgrade
change upgrade 3.6.15 --yes
exits 0
versions_are 3.6.15 3.6.0
killed_while_mixed 3.5.34 downgrade
change downgrade 3.5.34 --yes
exits 0
versions_are 3.5.34 3.5.0

# With a member down, no version changes.
on h2 systemctl stop etcd
change upgrade 3.6.15 --yes
exits 2
says 'h2 does not run'
on h2 systemctl start etcd
are_members h1 h2 h3
versions_are 3.5.34 3.5.0
history_fits
