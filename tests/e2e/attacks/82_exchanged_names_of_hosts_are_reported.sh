# shellcheck shell=bash
# h1's address under the name of h2 and the other way round: both machines are known by what an earlier apply left there.
# Uses a cluster that apply created, or creates one.
{ etcdctl endpoint health >/dev/null 2>&1 && on h1 test -e /var/lib/windlass/karmada/journal; } || {
  fresh
  applied
  exits 0
}
address() { sed -nE "s/^$1 .*ansible_host=([^ ]+).*/\1/p" "$inventory" | head -1; }
one=$(address h1) two=$(address h2)
right=$inventory
inventory=$state/inventory-exchanged.ini
sed -E "s/^(h1 .*ansible_host=)[^ ]+/\1$two/; s/^(h2 .*ansible_host=)[^ ]+/\1$one/" "$right" >"$inventory"
settled_trees >"$scratch/before"

planned
exits 1
says 'h1 is the machine that was known as h2, h2 is the machine that was known as h1; windlass changed nothing'
says '^hint: correct their addresses in the inventory'
applied -e etcd_quota_backend_bytes=3221225472
exits 1
says 'h1 is the machine that was known as h2'
etcd_inventory=$inventory etcd_playbook -e etcd_quota_backend_bytes=3221225472
exits 2
says 'h1 is the machine of the etcd member h2: two hosts of the inventory have exchanged their names'
# A reset of one of them would remove the other.
windlass playbook -i "$inventory" --limit h1 -e confirm_cluster_name=etcd "$ROOT/playbooks/etcd-reset.yml"
exits 2
says 'h1 is the machine of the etcd member h2, and not of h1. Nothing has been removed'

settled_trees >"$scratch/after"
same_trees "$scratch/before" "$scratch/after"
inventory=$right
planned
exits 0
rm -f "$state/inventory-exchanged.ini"
