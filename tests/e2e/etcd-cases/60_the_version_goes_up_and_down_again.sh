# shellcheck shell=bash
# Takes its turn: 3.5 becomes 3.6 and 3.5 again, while clients read and write.
. "$ROOT/tests/e2e/etcd-lib.sh"
"$ROOT/tests/etcd-binaries" 3.6.15 || broken "there is no etcd to upgrade to"
fresh_three_at 3.5.34
start_clients
change upgrade 3.6.15 --check
exits 0
says 'etcd 3[.]5[.]34: upgrade to 3[.]6[.]15, one member at a time, the leader last; a snapshot is taken first; members that wrote no raft snapshot'
says 'To go back: windlass etcd downgrade with a bundle of 3[.]5[.]34$'
versions_are 3.5.34 3.5.0
change upgrade 3.6.15 --yes
exits 0
versions_are 3.6.15 3.6.0
# Half of a downgrade is not one: an apply installs nothing of another minor version.
ETCD=3.5.34 members h1 h2 h3
exits 1
says 'run windlass etcd downgrade'
change downgrade 3.5.34 --yes
exits 0
versions_are 3.5.34 3.5.0
history_fits
