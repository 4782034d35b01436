# shellcheck shell=bash
fresh
trees >"$scratch/before"
grep -v '^h3 ' "$inventory" >"$scratch/two.ini"
windlass playbook -i "$scratch/two.ini" -e "etcd_bundle=$ROOT/target/etcd/3.5" "$ROOT/playbooks/etcd.yml"
exits 2
says 'an even number'
trees >"$scratch/after"
same_trees "$scratch/before" "$scratch/after"
