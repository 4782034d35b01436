# shellcheck shell=bash
on h2 "systemctl stop etcd && mv /var/lib/etcd/data/member /root/member && systemctl start --no-block etcd"
sleep 2
[ "$(on h2 'systemctl is-active etcd || true')" != active ] || broken "a member without its data started"
trees | grep -v /var/lib/etcd/data/member >"$scratch/before"
etcd_playbook
exits 2
says 'h2 is a registered member'
trees | grep -v /var/lib/etcd/data/member >"$scratch/after"
same_trees "$scratch/before" "$scratch/after"
on h2 "systemctl stop etcd && mv /root/member /var/lib/etcd/data/member && systemctl start etcd"
healthy
