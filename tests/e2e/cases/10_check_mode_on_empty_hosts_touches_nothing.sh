# shellcheck shell=bash
fresh
trees >"$scratch/before"
etcd_playbook --check --diff
exits 0
recap h1 failed 0
says 'ETCD_NAME="?h2'
trees >"$scratch/after"
same_trees "$scratch/before" "$scratch/after"
[ ! -e "$state/credentials" ] || broken "it made credentials"
