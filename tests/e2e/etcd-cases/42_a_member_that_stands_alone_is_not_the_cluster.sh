# Takes its turn: every third day.
# shellcheck shell=bash
# A member that was restored by hand has a leader of its own, and after some restarts a higher term than the others. It is not taken for
# the cluster: not when members leave, not when a host is reset, and not when data is compared.
. "$ROOT/tests/e2e/etcd-lib.sh"
fresh_five
members h1 h2 h3
exits 0
etcdctl put key 1
# shellcheck disable=SC1091  # a run writes it
(
  . "$state/credentials/etcd/etcdctl.env"
  ETCDCTL_ENDPOINTS=https://$(address_of h1):2379 "$ROOT/target/etcd/3.5/etcdctl" snapshot save "$scratch/snapshot"
)
on h3 'systemctl stop etcd; rm -r /var/lib/etcd/data/member'
"$ROOT/target/etcd/3.5/etcdctl" snapshot restore "$scratch/snapshot" --data-dir "$scratch/alone" --name h3 \
  --initial-cluster "h3=https://$(address_of h3):2380" --initial-advertise-peer-urls "https://$(address_of h3):2380" --initial-cluster-token alone
cp -r "$scratch/alone/member" "$state/h3/root/var/lib/etcd/data/"
on h3 'chown -R --reference /var/lib/etcd/data /var/lib/etcd/data/member; for n in 1 2 3 4; do systemctl restart etcd; done'

etcd_members remove-member h1,h2,h3 h1 --yes
[ "$code" != 0 ] || broken "a member of the cluster was removed although the member that stands alone does not list it"
says 'belong to different clusters, each with a leader of its own: .*h3 [(]leader: h3, members: 1[)]'
windlass playbook -l h1 -e confirm_cluster_name=etcd -i "$(inventory_of h1 h2 h3)" "$ROOT/playbooks/etcd-reset.yml"
exits 2
says 'belong to different clusters'
etcd_members verify h1,h2,h3
exits 2
says 'belong to different clusters.*cannot be compared'
for h in h1 h2; do on $h 'systemctl is-active etcd && [ -d /var/lib/etcd/data/member ]'; done
put_through_h1 key 2

# The way out that the message names.
on h3 systemctl stop etcd
etcd_members verify h1,h2,h3
exits 2
says 'h3 +no hash'
etcd_members replace-member h1,h2,h3 h3 --yes
exits 0
are_members h1 h2 h3
[ "$(etcdctl get key --print-value-only)" = 2 ] || broken "the write that the cluster accepted is gone"

# Others were started after a member that was made a cluster of its own: they end, and it alone answers.
on h3 "mkdir -p /run/systemd/system/etcd.service.d; printf '[Service]\nEnvironment=ETCD_FORCE_NEW_CLUSTER=true\n' >/run/systemd/system/etcd.service.d/alone.conf; systemctl daemon-reload"
for h in h1 h2; do on $h systemctl stop etcd; done
on h3 systemctl restart etcd
sleep 3
etcd_members verify h1,h2,h3
exits 2
says 'h1 +no hash'
