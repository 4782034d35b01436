# shellcheck shell=bash
# Takes long: every minor version of etcd, up and down again, while clients write.
. "$ROOT/tests/e2e/etcd-lib.sh"
"$ROOT/tests/etcd-binaries" 3.5.34 3.6.15 3.7.2 || broken "there is no etcd to upgrade to"
fresh_five
ETCD=3.4 members h1 h2 h3
exits 0
etcdctl put e2e kept
start_clients

# has RELEASE: every member runs it, and so does the cluster.
has() {
  versions_are "$1" "${1%.*}.0"
  [ "$(etcdctl get e2e --print-value-only)" = kept ] || broken "data was lost"
}

# An apply changes no minor version, and says what does.
ETCD=3.5 members h1 h2 h3
exits 1
says 'etcd 3[.]4[.]23 runs, and the bundle has 3[.]5[.]16[.] Nothing has been changed[.] To change the version, run windlass etcd upgrade'
change upgrade 3.6.15 --check
exits 2
says 'etcd can be upgraded by one minor version at a time'
has 3.4.23

# Requests to /health of 3.4.23 stay in the log, and 3.6 does not read them.
for h in h1 h2 h3; do for _ in 1 2 3; do ask $h /health; done; done
change upgrade 3.5 --yes
exits 0
has 3.5.16
change upgrade 3.6.15 --check
exits 2
says 'to 3[.]6 only from 3[.]5[.]32'
change downgrade 3.4 --yes
exits 2
says 'downgraded by one minor version from 3[.]6 on'
ETCD=3.5.34 members h1 h2 h3
exits 0
has 3.5.34

change upgrade 3.6.15 --check
exits 0
says 'etcd 3[.]5[.]34: upgrade to 3[.]6[.]15, one member at a time, the leader last'
has 3.5.34
change upgrade 3.6.15 --yes
exits 0
has 3.6.15
for h in h1 h2 h3; do
  on $h 'test ! -e /run/systemd/system/etcd.service.d/windlass-raft-snapshot.conf' || broken "the small snapshot-count of $h is left"
done
found=$(for h in h1 h2 h3; do on $h 'ls /var/backups/etcd || true'; done | grep -c 'before-etcd-3[.]6[.]15[.]db$') || true
[ "$found" = 1 ] || broken "$found snapshots were taken before 3.6.15"
change upgrade 3.6.15 --yes
exits 0
says 'Nothing to do'
change upgrade 3.7.2 --yes
exits 0
has 3.7.2
change downgrade 3.6.15 --yes
exits 0
has 3.6.15
change downgrade 3.5.34 --yes
exits 0
has 3.5.34
etcd_members verify h1,h2,h3
exits 0
history_fits
