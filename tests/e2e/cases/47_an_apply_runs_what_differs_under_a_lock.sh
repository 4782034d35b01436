fresh
planned
exits 0
says '^etcd: 3 hosts$'
says '^  h1 +[0-9]+ files'
says '^nothing to do: controlPlane, members, removals, addons$'
for h in h1 h2 h3; do on $h '! [ -e /var/lib/windlass ] && ! [ -e /etc/etcd ]' || broken "a plan left something on $h"; done

# Without a terminal and without --yes nobody can be asked.
mapfile -t a < <(apply_arguments)
windlass apply "${a[@]}"
exits 1
says 'cannot ask: standard input is not a terminal \(--yes applies without asking\)'

# As people see it: a line for each host.
WINDLASS_OUTPUT=default applied
exits 0
says 'applying etcd: '
says '^etcd: 3 hosts in [0-9.]+ s$'
for h in h1 h2 h3; do says "^  $h  [0-9]+ tasks changed$"; done
does_not_say 'TASK'
run=$(sed -n 's/^results of all tasks: windlass logs //p' "$output")
windlass logs "$run"
says 'TASK \[etcd : '
healthy
for h in h1 h2 h3; do
  lock_of $h | sed -n 1p | matches -E '^1 -$' || broken "the lock of $h was not released: $(lock_of $h)"
  [ "$(on $h stat -c %a /var/lib/windlass/karmada/lock)" = 644 ] || broken "the lock's mode"
  on $h "grep -q 'done.:true,.host.:.$h.}\$' /var/lib/windlass/karmada/journal" || broken "the journal of $h"
  no_sessions $h
done

# Nothing differs: nothing is run, and no lock is taken.
applied
exits 0
says '^Nothing to do\.$'
does_not_say 'PLAY'
lock_of h1 | sed -n 1p | matches -E '^1 -$' || broken "a lock was taken for nothing"

# A saved plan is for the world that it was made in.
planned -o "$scratch/plan.json" -e etcd_quota_backend_bytes=3221225472
exits 0
says '^etcd: 3 hosts$'
[ "$(stat -c %a "$scratch/plan.json")" = 600 ] || broken "others may read the plan"
on h2 'echo "# moved" >>/etc/etcd/etcd.env'
windlass apply "$scratch/plan.json" -e "etcd_bundle=$ROOT/target/etcd/3.5" -e etcd_quota_backend_bytes=3221225472 --playbooks "$ROOT/playbooks" --yes
exits 1
says 'windlass changed nothing, because the hosts or the inventory changed since the plan was saved:'
says '^  h2: file /etc/etcd/etcd.env has changed$'
on h1 '! grep -rq 3221225472 /etc/etcd' || broken "it was applied all the same"
# With other variables the plan differs.
windlass apply "$scratch/plan.json" -e "etcd_bundle=$ROOT/target/etcd/3.5" --playbooks "$ROOT/playbooks" --yes
exits 1
says 'input: host h1 has changed'
planned -o "$scratch/plan.json" -e etcd_quota_backend_bytes=3221225472
windlass apply "$scratch/plan.json" -e "etcd_bundle=$ROOT/target/etcd/3.5" -e etcd_quota_backend_bytes=3221225472 --playbooks "$ROOT/playbooks" --yes
exits 0
on h1 'grep -rq 3221225472 /etc/etcd' || broken "the plan was not applied"
healthy

# Of two at once one works.
in_background "$scratch/one"
one=$holder
in_background "$scratch/two"
two=$holder
first=0 second=0
wait "$one" || first=$?
wait "$two" || second=$?
cat "$scratch/one" "$scratch/two"
[ $((first + second)) = 1 ] || broken "they end with $first and $second, not with 0 and 1"
grep -aqhE "locked by .*: windlass apply|another run is taking the lock at the same time|something changed on the hosts while planning" "$scratch/one" "$scratch/two" || broken "the other does not say why"
healthy

# Every run is recorded, under the id that its journal on the hosts has.
run=$(on h1 "sed -n 's/.*\"apply\":\"\\([a-z0-9]*\\)\".*/\\1/p' /var/lib/windlass/karmada/journal")
[ -n "$run" ] || broken "the journal has no run"
windlass logs "$run"
exits 0
says 'applying etcd: '
says '^PLAY RECAP'
windlass runs --deployment karmada --limit 100
exits 0
says "^${run:0:12} .* apply +karmada "
