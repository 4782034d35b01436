# shellcheck shell=bash
# As an earlier version of the role left it: programs in /usr/local/bin, run from there.
fresh
etcd_playbook
exits 0
etcdctl put e2e kept
for h in h1 h2 h3; do
  on $h "cp /opt/windlass/etcd/etcd/current/etcd* /usr/local/bin/ && rm -r /opt/windlass &&
    sed -i s,/opt/windlass/etcd/etcd/current,/usr/local/bin,g /etc/systemd/system/etcd.service &&
    sed -i 's,\"/opt/windlass/etcd/etcd\",\"/usr/local/bin/etcd\"\, \"/usr/local/bin/etcdctl\"\, \"/usr/local/bin/etcdutl\",' /etc/etcd/installed.json &&
    systemctl daemon-reload && systemctl restart etcd"
done
well
etcd_playbook
exits 0
healthy
[ "$(etcdctl get e2e --print-value-only)" = kept ] || broken "data was lost"
for h in h1 h2 h3; do
  [ "$(on $h 'readlink /proc/$(pidof etcd)/exe')" = "$(on $h readlink -f /opt/windlass/etcd/etcd/current/etcd)" ] || broken "$h runs the old program"
  ! on $h 'ls /usr/local/bin/ | grep etcd; grep -l /usr/local/bin /etc/etcd/installed.json /etc/systemd/system/etcd.service' || broken "something of the former layout is left on $h"
done
etcd_playbook
nothing_changed
