# shellcheck shell=bash
fresh
on h2 "mkdir -p /var/lib/etcd/data/member/snap && echo precious >/var/lib/etcd/data/member/snap/db"
trees >"$scratch/before"
etcd_playbook
exits 2
says 'h2.*|left alone'
says 'windlass did not create'
trees >"$scratch/after"
same_trees "$scratch/before" "$scratch/after"
