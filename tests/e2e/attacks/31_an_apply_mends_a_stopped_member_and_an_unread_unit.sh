# shellcheck shell=bash
# Takes long: tests/e2e/campaign/run runs it.
# A dry run must not refuse what the run would mend; and a unit that was written but not read by systemd is not up to date.
a_cluster
on h2 systemctl stop etcd
planned
exits 0
says '^etcd: '
applied
exits 0
well

# A run that ended between writing the unit and the reload: no file differs any more.
on h3 'sed -i "s/^LimitNOFILE=.*/LimitNOFILE=18000/" /etc/systemd/system/etcd.service'
etcd_playbook -e etcd_limit_nofile=18000 --check
exits 0
recap h3 changed 1
etcd_playbook -e etcd_limit_nofile=18000
exits 0
for h in h1 h2 h3; do
  [ "$(on $h 'systemctl show -p NeedDaemonReload --value etcd')" = no ] || broken "systemd of $h has not read the unit"
  [ "$(on $h 'systemctl show -p LimitNOFILE --value etcd')" = 18000 ] || broken "etcd of $h runs with $(on $h 'systemctl show -p LimitNOFILE --value etcd')"
done
well

# A member that fails at each start with a unit that was corrected since, but not read.
on h3 'unit=/etc/systemd/system/etcd.service; sed -i "s/^LimitNOFILE=.*/LimitNOFILE=12/" $unit; systemctl daemon-reload; systemctl restart --no-block etcd; sleep 3; sed -i "s/^LimitNOFILE=.*/LimitNOFILE=18000/" $unit'
found=$(on h3 'systemctl is-active etcd || true')
[ "$found" != active ] || broken "etcd of h3 starts with 12 files"
etcd_playbook -e etcd_limit_nofile=18000
exits 0
well
