# kill -9 at a random line of what an apply tells, from bare hosts and from a cluster that is to be changed; sometimes a
# host loses its power, too. The next apply always converges. SEED and ROUNDS choose others.
fresh
SEED=${SEED:-1125}
RANDOM=$SEED
echo "seed $SEED"
rounds=${ROUNDS:-3}
quota=2147483648
lines=90
for round in $(seq "$rounds"); do
  at=$((RANDOM % lines + 1)) victim=h$((RANDOM % 3 + 1)) power=$((RANDOM % 3))
  echo "== round $round of seed $SEED: kill -9 after line $at$([ $power = 0 ] && echo ", and the power of $victim")"
  in_background "$scratch/told" -e etcd_quota_backend_bytes=$quota
  while [ "$(wc -l <"$scratch/told")" -lt $at ] && kill -0 "$holder" 2>/dev/null; do sleep 0.02; done
  kill -9 "$holder" 2>/dev/null || true
  wait "$holder" 2>/dev/null || true
  tail -3 "$scratch/told"
  if [ $power = 0 ]; then
    hosts kill $victim
    hosts start $victim
  fi
  applied -e etcd_quota_backend_bytes=$quota
  exits 0
  healthy
  on h1 "grep -rq $quota /etc/etcd" || broken "it was not applied"
  [ "$(etcdctl member list | wc -l)" = 3 ] || broken "a member is there twice"
  for h in h1 h2 h3; do
    no_sessions $h
    # Only a host whose power was cut may keep half a file beside the whole one.
    [ $power = 0 ] || on $h '! ls -a /etc/etcd /var/lib/windlass/karmada | grep "^\.windlass\|^\.lock"' || broken "half a file is left on $h"
  done
  etcdctl put "round$round" "$at"
  [ "$(etcdctl get round1 | tail -1)" != "" ] || broken "data was lost"
  applied -e etcd_quota_backend_bytes=$quota
  says '^Nothing to do\.$'
  quota=$((quota + 1048576))
done
