# shellcheck shell=bash
fresh
ETCD=3.4 etcd_playbook -f 1
exits 0
healthy
on h1 /opt/windlass/etcd/etcd/current/etcd --version | grep 3.4.23
