# shellcheck shell=bash
fresh
on h2 "echo mine >/etc/etcd"
etcd_playbook
exits 2
recap h2 failed 1
says '/etc/etcd'
[ "$(on h2 cat /etc/etcd)" = mine ] || broken "it removed the file"
on h2 rm /etc/etcd
etcd_playbook
exits 0
healthy
