# shellcheck shell=bash
etcdctl put e2e before
last=$(leader)
etcd_playbook -e '{"etcd_flags": {"snapshot-count": 5000}}'
exits 0
healthy
[ "$(etcdctl get e2e --print-value-only)" = before ] || broken "data was lost"
for h in h1 h2 h3; do echo "$(started_at $h) $h"; done | sort -n >"$scratch/order"
cat "$scratch/order"
[ "$(tail -1 "$scratch/order" | cut -d' ' -f2)" = "$last" ] || broken "the leader $last was not the last"
# More than five seconds between any two.
awk 'NR > 1 && $1 - before < 5000000 {exit 1} {before = $1}' "$scratch/order" || broken "two members were restarted at once"
etcd_playbook -e '{"etcd_flags": {"snapshot-count": 5000}}'
exits 0
nothing_changed
