# shellcheck shell=bash
# Takes its turn: every third day.
# windlass etcd verify and windlass etcd defrag, on a real cluster whose database is full.
fresh
etcd_playbook -e etcd_quota_backend_bytes=20971520
exits 0
mapfile -t deployment < <(apply_arguments)
deployment+=(-e etcd_quota_backend_bytes=20971520)
etcdctl put windlass-e2e value-that-is-right
windlass etcd verify "${deployment[@]}"
exits 0
says '^h1 +same +[0-9]+ +never$'
says '^All 3 members have the same data at revision [0-9]+\.$'
windlass etcd verify "${deployment[@]}" -o json
exits 0
says '"same": true'

# Nothing is worth it yet.
sizes() { etcdctl endpoint status -w json | grep -o '"dbSize":[0-9]*' | sed 's/.*://'; }
windlass etcd defrag --yes "${deployment[@]}"
exits 0
says '^Nothing to do'

# One key is written until the database is full.
head -c 1000000 /dev/urandom | base64 -w 0 >"$scratch/large"
until etcdctl alarm list | matches NOSPACE; do etcdctl put large <"$scratch/large" || :; done
windlass etcd check "${deployment[@]}"
exits 2
says '^alarms +refused '
etcdctl put windlass-e2e refused && broken "etcd accepts a write"
sizes >"$scratch/full"
before=$(leader)
# What it would do, on a cluster that stays as it is.
windlass etcd defrag --compact --check --out "$scratch/defrag.json" "${deployment[@]}"
exits 0
says 'the history of the keys of etcd before revision [0-9]+ would be removed'
says 'would clear the alarm NOSPACE'
etcdctl alarm list | matches NOSPACE || broken "a dry run cleared the alarm"
sizes | cmp - "$scratch/full" || broken "a dry run changed a database"
windlass etcd defrag --compact --yes --plan "$scratch/defrag.json"
exits 2
windlass etcd defrag --yes --plan "$scratch/defrag.json" "${deployment[@]:2}"
exits 0
says 'h1: [0-9]+ MiB freed; it answered no client for '
healthy
found=$(etcdctl alarm list)
[ -z "$found" ] || broken "the alarm is still there"
etcdctl put windlass-e2e value-that-is-right
sizes >"$scratch/sizes"
[ "$(wc -l <"$scratch/sizes")" = 3 ] || broken "not every member reports its size"
while read -r size; do [ "$size" -lt 8000000 ] || broken "a database still has $size bytes"; done <"$scratch/sizes"
# The leader was the last, and another one leads since then.
found=$(leader)
[ "$found" != "$before" ] || broken "$before answered no client while it was the leader"
grep -aoE '^ *"?msg"?: "?h[123]: .* MiB, of which|h[123]: [0-9]+ MiB, of which' "$output" | grep -o 'h[123]' | tail -1 | matches -x "$before" || broken "$before was not the last"
windlass etcd check "${deployment[@]}"
exits 0
windlass etcd defrag --compact --yes --unused-percent 50 --unused-mb 1 "${deployment[@]}"
exits 0
windlass etcd verify "${deployment[@]}"
exits 0

# A member that is down: it would stay as large as it is, and nobody knows its data.
on h2 systemctl stop etcd
windlass etcd defrag --yes --unused-percent 0 --unused-mb 0 "${deployment[@]}"
exits 2
says 'reachable: 2 of 3 members answer; not: h2'
windlass etcd verify "${deployment[@]}"
exits 2
says '^h2 +no hash '
says '^No hash: h2\.'
on h2 systemctl start etcd
healthy

# A value that changes on the disk of one member: etcd serves it.
on h3 'systemctl stop etcd; sed -i s/value-that-is-right/value-that-is-wrong/g /var/lib/etcd/data/member/snap/db; systemctl start etcd'
healthy
windlass etcd verify "${deployment[@]}"
exits 2
says '^h3 +differs '
says '^h1 +same '
says '^Other data than the majority at revision [0-9]+: h3\. Stop etcd on its host .*windlass etcd replace-member h3$'
# After the next compaction etcd sees it itself: it raises an alarm, and no member accepts a write.
etcdctl put windlass-e2e/later new-value
revision=$(etcdctl endpoint status -w json | grep -o '"revision":[0-9]*' | sed 's/.*://' | sort -n | tail -1)
etcdctl compact "$revision"
# It compares the members once a minute.
for _ in $(seq 150); do
  ! etcdctl alarm list | matches CORRUPT || break
  sleep 1
done
etcdctl alarm list | matches CORRUPT || broken "etcd raises no alarm"
etcdctl put windlass-e2e refused && broken "etcd accepts a write"
windlass etcd check "${deployment[@]}"
exits 2
says '^alarms +refused .*CORRUPT'
starts >"$scratch/starts"
windlass apply --yes "${deployment[@]}" -e etcd_quota_backend_bytes=41943040
[ "$code" != 0 ] || broken "members are restarted although the data of one is wrong"
says CORRUPT
windlass etcd backup "$scratch/backups" "${deployment[@]}"
[ "$code" != 0 ] || broken "a backup is taken although nobody knows which data is right"
starts | diff "$scratch/starts" - || broken "a member was restarted"
# The way out, as the documentation has it.
windlass etcd verify "${deployment[@]}"
exits 2
says '^Other data than the majority at revision [0-9]+: h3\.'
# It answers, so it would count as healthy.
windlass etcd replace-member h3 --yes "${deployment[@]}"
exits 2
on h3 systemctl stop etcd
etcdctl alarm disarm
windlass etcd replace-member h3 --yes "${deployment[@]}"
exits 0
healthy
windlass etcd verify "${deployment[@]}"
exits 0
windlass etcd check "${deployment[@]}"
says '^alarms +ok '
[ "$(etcdctl get windlass-e2e --print-value-only)" = value-that-is-right ] || broken "the wrong value is served"
[ "$(etcdctl get windlass-e2e/later --print-value-only)" = new-value ] || broken "the value that was written last is gone"
windlass etcd backup "$scratch/backups" "${deployment[@]}"
exits 0
# Later cases have another quota.
fresh
