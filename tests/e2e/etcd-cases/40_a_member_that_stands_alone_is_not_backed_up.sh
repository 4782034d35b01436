# Takes long: tests/e2e/etcd 40_a_member_that_stands_alone_is_not_backed_up
# shellcheck shell=bash
# Backups of a cluster that is not well: never from a member with data of its own, and never without a word about what may be missing.
. "$ROOT/tests/e2e/etcd-lib.sh"
fresh_five
members h1 h2 h3
exits 0
mapfile -t three < <(printf '%s\n' -i "$(inventory_of h1 h2 h3)" -e "etcd_bundle=$ROOT/target/etcd/3.5" --playbooks "$ROOT/playbooks")
backups=$scratch/backups
mkdir -m 0777 "$scratch/open"
windlass etcd backup "$scratch/open" "${three[@]}"
exits 1
says 'others can write to it'
windlass etcd backup "$backups" "${three[@]}"
exits 0

# A member that another person started on its own, under the same cluster id.
hosts split h3 h1
hosts split h3 h2
on h3 "systemctl stop etcd; mkdir -p /run/systemd/system/etcd.service.d; printf '[Service]\nEnvironment=ETCD_FORCE_NEW_CLUSTER=true\n' >/run/systemd/system/etcd.service.d/alone.conf; systemctl daemon-reload; systemctl start etcd"
sleep 3
windlass etcd backup "$backups" --keep 1 "${three[@]}"
[ "$code" != 0 ] || broken "a cluster that is split in two was backed up"
says 'no backup: members that have a leader belong to different clusters'
[ "$(find "$backups" -mindepth 1 -maxdepth 1 -name '*-r*' | wc -l)" = 1 ] || broken "the good backup is gone"
on h3 "systemctl stop etcd; rm -r /run/systemd/system/etcd.service.d; systemctl daemon-reload"
hosts join h3 h1
hosts join h3 h2

# A host that does not answer: the backup is complete, and the exit code says that it is not all.
hosts kill h3
sleep 2
windlass etcd backup "$backups" --keep 5 "${three[@]}"
exits 4
says 'the hashes of 2 members'
# Without a leader the newest writes may be missing.
on h2 systemctl stop etcd
sleep 5
windlass etcd backup "$backups" --keep 1 "${three[@]}"
exits 2
says 'h1 knew no leader'
says 'removed nothing: '
[ "$(find "$backups" -mindepth 1 -maxdepth 1 -name '*-r*' | wc -l)" = 3 ] || broken "a backup was removed for one that may lack writes"
