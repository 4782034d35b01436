# shellcheck shell=bash
# What does not run tells no version: what is installed and the data do. What is installed is started as ever.
a_cluster
etcdctl put e2e kept
# A stored text that looks like etcd's own record of its version.
etcdctl put text '"clusterVersion":"3.9.0" clusterVersion3.9.0 clusterVersion\x12\x053.9.0'
for h in h1 h2 h3; do on $h systemctl stop etcd & done
wait
members_files >"$scratch/before"
ETCD=3.4 etcd_playbook
exits 2
says 'does not run\. Its data is of etcd 3\.5\.0, 3\.5\.16 is installed, and the bundle has 3\.4\.23'
# Data of 3.5 are never taken for older ones because the programs are.
on h1 'cd /opt/windlass/etcd/etcd && cp -a 3.5.16 3.4.23 && ln -sfn 3.4.23 current'
ETCD=3.4 etcd_playbook --limit h1
exits 2
says 'Its data is of etcd 3\.5\.0, 3\.4\.23 is installed'
on h1 'cd /opt/windlass/etcd/etcd && ln -sfn 3.5.16 current && rm -r 3.4.23'
members_files >"$scratch/after"
diff "$scratch/before" "$scratch/after" || broken "it changed something"
etcd_playbook
exits 0
healthy
[ "$(etcdctl get e2e --print-value-only)" = kept ] || broken "data was lost"
