# shellcheck shell=bash
# The other members would not find it. Once it is registered in etcd, the address changes.
a_cluster
etcdctl put e2e kept
address=$(hosts list | awk '$1 == "h2" {print $2}')
other=${address%.*}.202
on h2 "ip address replace $other/24 dev \$(ip -o -4 address show to $address | awk '{print \$2}')"
sed "s/^h2 .*/& etcd_address=$other/" "$inventory" >"$state/other-address.ini"
members_files >"$scratch/before"
etcd_inventory=$state/other-address.ini etcd_playbook
exits 2
says "h2 is registered in the cluster etcd with the peer address https://$address:2380, but would now listen on https://$other:2380"
members_files >"$scratch/after"
diff "$scratch/before" "$scratch/after" || broken "it changed something"
# The way out that it named.
id=$(grep -aoE "member +update [0-9a-f]+" "$output" | head -1 | awk '{print $3}')
on h2 systemctl stop etcd
etcdctl member update "$id" --peer-urls="https://$other:2380"
etcd_inventory=$state/other-address.ini etcd_playbook -e etcd_settle_seconds=2
exits 0
healthy
etcdctl member list | grep "$other:2379" || broken "h2 does not name its new address"
[ "$(etcdctl get e2e --print-value-only)" = kept ] || broken "data was lost"
rm -rf "$state/other-address.ini" "$state/credentials"
on h2 "ip address delete $other/24 dev \$(ip -o -4 address show to $address | awk '{print \$2}')"
