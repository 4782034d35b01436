# shellcheck shell=bash
# 3.4 becomes 3.5, one member at a time.
if [ "$(etcdctl endpoint status | grep -c '3\.4\.')" != 3 ]; then
  fresh
  ETCD=3.4 etcd_playbook
  exits 0
fi
etcdctl put e2e kept
# An upgrade that is refused leaves the members their programs.
hosts kill h3
put_through_h1 e2e kept
ETCD=3.5 etcd_playbook --limit h1,h2
exits 2
says 'is not restarted: of the 3 members .* Down: h3 \('
for h in h1 h2; do on $h 'readlink /opt/windlass/etcd/etcd/current' | grep '^3\.4\.' || broken "$h would start another version"; done
hosts start h3
well
ETCD=3.5 etcd_playbook
exits 0
healthy
[ "$(etcdctl get e2e --print-value-only)" = kept ] || broken "data was lost"
for h in h1 h2 h3; do etcdctl endpoint status -w fields; done | grep '"Version"' | grep -v 3.5.16 && broken "not all run the new version"
ETCD=3.5 etcd_playbook
nothing_changed
# Nobody goes back.
ETCD=3.4 etcd_playbook
exits 2
says 'not downgraded'
healthy
