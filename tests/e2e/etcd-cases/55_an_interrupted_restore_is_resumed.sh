# Takes long: tests/e2e/etcd 55_an_interrupted_restore_is_resumed
# shellcheck shell=bash
# The controller is killed in the middle of a restore, or of its undoing, and a host restarts meanwhile. The next run completes it.
. "$ROOT/tests/e2e/etcd-lib.sh"
fresh_five
members h1 h2 h3
exits 0
mapfile -t three < <(printf '%s\n' -i "$(inventory_of h1 h2 h3)" -e "etcd_bundle=$ROOT/target/etcd/3.5" -e etcd_settle_seconds=1 --playbooks "$ROOT/playbooks")
etcdctl put key/then 1
windlass etcd backup "$scratch/backups" "${three[@]}"
exits 0
backup=$(find "$scratch/backups" -mindepth 1 -maxdepth 1 -name '*-r*')
etcdctl put key/later 1

# What all members have, after each of them was asked.
has() {
  are_members h1 h2 h3
  [ "$(etcdctl get key/ --prefix --keys-only | grep . | sort | tr '\n' ' ')" = "$1" ] || broken "the keys are $(etcdctl get key/ --prefix --keys-only), not $1"
  [ "$(etcdctl endpoint hashkv -w json | grep -o '"hash":[0-9]*' | sort -u | wc -l)" = 1 ] || broken "the members have different data"
}
steps=('Record the restore' 'Copy the snapshot to the host' 'Create the new data from the snapshot' 'Stop etcd on all hosts' 'Record that data is moved'
  'Move the old data away and the new data in' 'Write the marker that names the owner of the data directory' 'Start the members together' 'Wait until the cluster is healthy' 'Record that the cluster is restored')
for step in "${steps[@]}"; do
  after=0.$((RANDOM % 5))
  killed_at "$step" etcd restore "$backup" --name karmada "${three[@]}"
  # A host loses its power meanwhile.
  [ $((RANDOM % 2)) = 0 ] || { hosts kill h2; hosts start h2; }
  # Until it is complete, nothing else touches the hosts.
  if on h1 'grep -qE "\"state\": \"(preparing|moving)" /var/lib/etcd/data.restore.json'; then
    members h1 h2 h3
    [ "$code" != 0 ] || broken "an apply ran in the middle of a restore"
  fi
  windlass etcd restore "$backup" --name karmada "${three[@]}"
  [ "$code" = 0 ] || says 'is not released yet'
  has 'key/then '
  # Written since the restore: gone after its undoing.
  etcdctl put key/since 1
  killed_at "${undone:-Stop etcd on all hosts}" etcd restore --undo --name karmada "${three[@]}"
  windlass etcd restore --undo --name karmada "${three[@]}"
  [ "$code" = 0 ] || says 'there is no restore of etcd that was not released'
  has 'key/later key/then '
  undone='Move the restored data away and the old data back'
  [ $((RANDOM % 2)) = 0 ] || undone='Start the members together'
done
members h1 h2 h3
exits 0
