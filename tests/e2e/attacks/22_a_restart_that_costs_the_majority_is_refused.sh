# shellcheck shell=bash
# One of three is down, and the run is configured to ignore it: what remains is no majority while a member restarts.
a_cluster
hosts kill h3
put_through_h1 e2e "while h3 is down"
starts_of_two() { started_at h1; started_at h2; }
starts_of_two >"$scratch/before"
# The plan is refused, before a file is written.
mapfile -t deployment < <(apply_arguments)
windlass plan "${deployment[@]}" -e '{"etcd_flags": {"snapshot-count": 41000}}'
[ "$code" = 1 ] || broken "the plan promises a restart that would be refused (exit code $code)"
says 'only 1 would stay up, and 2 are needed'
for h in h1 h2; do on $h '! grep -q 41000 /etc/etcd/etcd.env' || broken "a plan wrote the settings of $h"; done
etcd_playbook --limit h1,h2 -e '{"etcd_flags": {"snapshot-count": 41000}}'
exits 2
says 'is not restarted: of the 3 members .* only 1 would stay up, and 2 are needed. Down: h3 \('
for h in h1 h2; do on $h '! grep -q 41000 /etc/etcd/etcd.env' || broken "$h has settings that its member would start with"; done
starts_of_two >"$scratch/after"
diff "$scratch/before" "$scratch/after" || broken "a member was restarted"
etcdctl put e2e written || broken "the majority takes no writes"
# A run that need not restart anything is none that costs the majority: it puts the settings back.
etcd_playbook --limit h1,h2
exits 0
hosts start h3
well
