# shellcheck shell=bash
# windlass etcd check, backup and backups, on a real cluster.
a_cluster
mapfile -t deployment < <(apply_arguments)
windlass etcd check "${deployment[@]}"
exits 0
for check in reachable members leader learners alarms lag versions read write database fsync disk certificates clock; do
  says "^$check +(ok|warning) "
done
says '^versions +ok +3\.5\.16$'
# What is refused has its check, its figure and what to do; a check that is skipped refuses nothing.
windlass etcd check "${deployment[@]}" -e etcd_check_certificate_days=5000 -o json
exits 2
says '"state": "refused"'
says '"passed": false'
windlass etcd check "${deployment[@]}" -e etcd_check_certificate_days=5000 --skip-check certificates
exits 0
says '^certificates +skipped '
windlass etcd check "${deployment[@]}" --skip-check certificate
exits 2
says 'there is no check "certificate" of etcd'
# A change is refused for the same reasons.
etcd_playbook -e '{"etcd_flags": {"snapshot-count": 5001}, "etcd_fsync_limit_ms": 0}'
exits 2
says 'refused by the check fsync: .* ms .*etcd_fsync_limit_ms'
etcd_playbook -e '{"etcd_flags": {"snapshot-count": 5001}, "etcd_fsync_limit_ms": 0, "etcd_skip_checks": ["fsync"]}'
exits 0
# Later cases use this cluster with the flags that it had.
etcd_playbook
exits 0
healthy

# A backup: from a follower, proven, and only its owner can read it.
etcdctl put e2e "backed up"
backups=$scratch/backups
windlass etcd backup "$backups" "${deployment[@]}"
exits 0
says 'from the follower h[123], etcd 3.5.16, revision [0-9]+, '
says 'the hashes of 3 members'
[ "$(stat -c %a "$backups")" = 700 ] || broken "the directory of backups is open"
[ "$(find "$backups" -type f -printf '%m ')" = "600 600 " ] || broken "a backup is open"
for h in h1 h2 h3; do
  found=$(on $h 'test ! -d /var/backups/etcd || find /var/backups/etcd -type f')
  [ -z "$found" ] || broken "a snapshot is left on $h"
done
for value in two three; do
  etcdctl put e2e $value
  windlass etcd backup "$backups" --keep 2 "${deployment[@]}"
  exits 0
done
says 'removed [0-9TZ]+-r[0-9]+'
windlass etcd backups "$backups"
exits 0
[ "$(grep -c ' yes$' "$output")" = 2 ] || broken "two backups are not kept"
# A member that is cut off from the others has old data: it gives no backup, and prevents none.
hosts split h3 h1
hosts split h3 h2
# Until h1 and h2 have a leader.
put_through_h1 e2e "while h3 is cut off"
windlass etcd backup "$backups" "${deployment[@]}"
exits 0
says 'from the (follower|leader) h[12], '
says 'the hashes of 2 members'
hosts join h3 h1
hosts join h3 h2
well
# A member that is down does not prevent a backup; without a member there is none, and nothing is left of it.
on h3 systemctl stop etcd
windlass etcd check "${deployment[@]}"
exits 2
says '^reachable +refused +2 of 3 members answer; not: h3'
says '^reachable: start the members'
windlass etcd backup "$backups" "${deployment[@]}"
exits 0
says 'the hashes of 2 members'
on h1 systemctl stop etcd
on h2 systemctl stop etcd
windlass etcd backup "$backups" "${deployment[@]}"
[ "$code" != 0 ] || broken "a backup of nothing succeeded"
says 'no backup: no member of etcd'
[ "$(find "$backups" -mindepth 1 -maxdepth 1 | wc -l)" = 4 ] || broken "something is left of a backup that failed"
for h in h1 h2 h3; do on $h systemctl start --no-block etcd; done
well
# Damage is found.
damaged=$(find "$backups" -name '*.zst' | sort | head -1)
printf x | dd of="$damaged" bs=1 seek=200 conv=notrunc status=none
windlass etcd backups "$backups"
exits 2
says ' no: '
