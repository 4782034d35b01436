# shellcheck shell=bash
a_cluster
etcdctl put e2e kept
on h2 "systemctl stop etcd && mv /var/lib/etcd/data/member /root/member && systemctl start --no-block etcd"
sleep 2
found=$(on h2 'systemctl is-active etcd || true')
[ "$found" != active ] || broken "a member without its data started"
trees | grep -v /var/lib/etcd/data/member >"$scratch/before"
etcd_playbook
exits 2
says 'h2 is a registered member'
trees | grep -v /var/lib/etcd/data/member >"$scratch/after"
same_trees "$scratch/before" "$scratch/after"
on h2 "systemctl stop etcd && mv /root/member /var/lib/etcd/data/member && systemctl start etcd"
healthy
# A disk that no host has mounted takes the marker with it. What is installed still says that the cluster was formed.
for h in h1 h2 h3; do on $h "systemctl stop etcd && mv /var/lib/etcd /root/etcd" & done
wait
settled_trees >"$scratch/before"
for directory in /var/lib/etcd/data /var/lib/elsewhere; do
  etcd_playbook -e etcd_data_dir=$directory
  exits 2
  for h in h1 h2 h3; do
    says "the cluster etcd was already formed, as /etc/etcd/formation.env records, but $directory on $h is empty.*mount it.*etcd-reset.yml"
  done
done
settled_trees >"$scratch/after"
same_trees "$scratch/before" "$scratch/after"
for h in h1 h2 h3; do on $h "mv /root/etcd /var/lib/etcd && systemctl start --no-block etcd" & done
wait
well
[ "$(etcdctl get e2e --print-value-only)" = kept ] || broken "data was lost"
