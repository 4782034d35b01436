# shellcheck shell=bash
# After one_fork_forms_a_cluster_too: 3.4 becomes 3.5, one member at a time.
etcdctl put e2e kept
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
