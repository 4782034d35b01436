# shellcheck shell=bash
fresh
hosts kill h2
{ tree h1; tree h3; } >"$scratch/before"
etcd_playbook -T 5
exits 4
recap h2 unreachable 1
says 'cannot connect to h2 .*: (timed out after 5s|No route to host)'
{ tree h1; tree h3; } >"$scratch/after"
same_trees "$scratch/before" "$scratch/after"
hosts start h2
etcd_playbook
exits 0
healthy
