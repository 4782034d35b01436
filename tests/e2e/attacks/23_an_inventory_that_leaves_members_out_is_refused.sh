# shellcheck shell=bash
a_cluster
members_files >"$scratch/before"
etcd_inventory=$(inventory_of h1)
for stopped in no yes; do
  if [ $stopped = yes ]; then on h1 systemctl stop etcd; fi
  etcd_playbook
  exits 2
  says 'The inventory lacks h2, h3'
done
on h1 systemctl start --no-block etcd
members_files >"$scratch/after"
diff "$scratch/before" "$scratch/after" || broken "it changed something"
well
rm "$etcd_inventory"
