. "$ROOT/tests/e2e/karmada-lib.sh"
fresh
etcd_playbook
exits 0
trees >"$scratch/before"
karmada karmada --check --diff
exits 0
trees >"$scratch/after"
same_trees "$scratch/before" "$scratch/after"
[ ! -e "$state/credentials/karmada" ] || broken "check mode made credentials"
