# shellcheck shell=bash
# 3.4 becomes 3.5, one member at a time, by the playbook for that.
if [ "$(etcdctl endpoint status | grep -c '3\.4\.')" != 3 ]; then
  fresh
  ETCD=3.4 etcd_playbook
  exits 0
fi
etcdctl put e2e kept
etcd_upgrade() { windlass playbook -i "$inventory" -e "etcd_bundle=$ROOT/target/etcd/3.5" "$@" "$ROOT/playbooks/etcd-upgrade.yml"; }
keep_their_programs() {
  for h in h1 h2 h3; do on $h 'readlink /opt/windlass/etcd/etcd/current' | grep '^3\.4\.' || broken "$h would start another version"; done
}
# What installs etcd changes no minor version.
ETCD=3.5 etcd_playbook
exits 2
says 'etcd 3[.]4[.]23 runs, and the bundle has 3[.]5[.]16.*windlass etcd upgrade'
etcd_upgrade --limit h1,h2
exits 2
says 'this run has the limit .* but an upgrade changes all members'
# An upgrade that is refused leaves the members their programs.
hosts kill h3
put_through_h1 e2e kept
etcd_upgrade
says 'refused by the check reachable|unreachable'
[ "$code" != 0 ] || broken "it upgrades with a member down"
hosts start h3
keep_their_programs
well
etcd_upgrade --check
exits 0
keep_their_programs
etcd_upgrade
exits 0
healthy
[ "$(etcdctl get e2e --print-value-only)" = kept ] || broken "data was lost"
for h in h1 h2 h3; do etcdctl endpoint status -w fields; done | grep '"Version"' | grep -v 3.5.16 && broken "not all run the new version"
found=$(for h in h1 h2 h3; do on $h 'ls /var/backups/etcd || true'; done | grep -c 'before-etcd-3[.]5[.]16[.]db$') || true
[ "$found" = 1 ] || broken "$found snapshots were taken"
etcd_upgrade
nothing_changed
ETCD=3.5 etcd_playbook
nothing_changed
# 3.4 cannot read what 3.5 wrote.
ETCD=3.4 etcd_playbook
exits 2
says 'downgraded by one minor version from 3[.]6 on'
healthy
