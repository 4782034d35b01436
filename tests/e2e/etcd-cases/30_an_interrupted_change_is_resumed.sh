# Takes long: tests/e2e/etcd 30_an_interrupted_change_is_resumed
# shellcheck shell=bash
# The controller is killed in the middle of a join, a removal and a replacement. The next run completes it.
. "$ROOT/tests/e2e/etcd-lib.sh"
fresh_five
members h1 h2 h3
exits 0
are_members h1 h2 h3
start_clients

arguments() { printf '%s\n' -i "$(inventory_of "$@")" -e "etcd_bundle=$ROOT/target/etcd/3.5" -e etcd_settle_seconds=1 --playbooks "$ROOT/playbooks" --yes; }
options=(-e etcd_settle_seconds=1)

joins=('Add the member as a learner' 'Start the member' 'Promote the member when it is in step with the leader' 'Record that the host has joined')
removals=('Remove the member from the cluster' 'Wait until the other members are healthy' 'Stop the member' 'Archive the data')
for round in 0 1 2 3; do
  after=0.$((RANDOM % 6))
  mapfile -t five < <(arguments h1 h2 h3 h4 h5)
  killed_at "${joins[round]}" apply "${five[@]}"
  members h1 h2 h3 h4 h5
  exits 0
  are_members h1 h2 h3 h4 h5
  killed_at "${removals[round]}" etcd remove-member h4 h5 "${five[@]}"
  windlass etcd remove-member h4 h5 "${five[@]}"
  exits 0
  are_members h1 h2 h3
  for h in h4 h5; do
    [ "$(on $h 'systemctl is-enabled etcd || true')" = disabled ] || broken "etcd on $h is enabled"
    on $h 'test -d /var/lib/etcd/data.removed-*/member/snap' || broken "the data of $h was not kept"
    on $h 'rm -r /var/lib/etcd/data.removed-*'
  done
done

mapfile -t three < <(arguments h1 h2 h3)
for task in 'Remove the member from the cluster' 'Archive the data' "${joins[@]}"; do
  on h3 "systemctl stop etcd && rm -rf /var/lib/etcd/data/member"
  killed_at "$task" etcd replace-member h3 "${three[@]}"
  windlass etcd replace-member h3 "${three[@]}"
  # Once the new member has a vote, it is healthy, and an apply completes what is left.
  if [ "$code" != 0 ]; then
    says 'h3 (answers|runs and has a leader), so it is not replaced'
    members h1 h2 h3
  fi
  exits 0
  are_members h1 h2 h3
  on h3 'rm -rf /var/lib/etcd/data.removed-*'
done
members h1 h2 h3
exits 0
says 'Nothing to do'
history_fits
