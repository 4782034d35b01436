# Takes long: some 20 minutes, with stand-ins only when named.
# Needs a bundle of the version before, in WINDLASS_BUNDLE_BEFORE: without, nothing is tested.
. "$ROOT/tests/e2e/karmada-lib.sh"
[ -n "${WINDLASS_BUNDLE_BEFORE:-}" ] || cannot_run "WINDLASS_BUNDLE_BEFORE names no bundle"
fresh
with_load_balancer
# There is somebody who could move workloads meanwhile.
sed -i 's/^karmada_virtual_address=.*/&\nkarmada_descheduler_enabled=true\nkarmada_controller_manager_feature_gates={"Failover": True}/' "$karmada_inventory"
before=-ekarmada_bundle=$WINDLASS_BUNDLE_BEFORE
SEED=${SEED:-$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}
RANDOM=$SEED
echo "seed $SEED"
karmada site "$before"
exits 0
old=$(runs h1 scheduler)
# A workload, in a member where there are programs that bring it there.
kubectl create deployment web --image=nginx
workload() { kubectl get deployment web -o "$@"; }
if [ -z "${WINDLASS_STAND_INS:-}" ]; then
  member_down
  member_up
  printf '\n[members]\n%s\n' "$m1" >>"$karmada_inventory"
  karmada add-member "$before"
  exits 0
  kubectl apply -f - <<'END'
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement: {clusterAffinity: {clusterNames: [m1]}}
END
  workload() { member get deployment web -o "$@"; }
  eventually workload name
fi
uid=$(workload 'jsonpath={.metadata.uid}')
has() { [ "$(workload 'jsonpath={.spec.replicas}')" = "$1" ]; }

# What cannot be is refused before any host is touched.
karmada karmada
exits 2
says 'Run windlass upgrade to change versions'
nothing_touched
karmada upgrade --component scheduler
exits 2
says 'before scheduler, upgrade .*webhook'
karmada upgrade --component apiservers
exits 2
says 'component is apiservers: it must be one of'
karmada upgrade -e '{"karmada_aggregated_apiserver_feature_gates": {"DeclarativeValidation": true}}'
exits 2
says 'has no feature gate DeclarativeValidation'
karmada rollback
exits 2
says 'this host has no upgrade of karmada that could be rolled back'
nothing_touched

may_move() {
  local h
  for h in h1 h2 h3; do
    [ "$(on "$h" systemctl is-active karmada-descheduler)" = active ] || broken "the descheduler of $h still rests"
    on "$h" "tr '\\0' '\\n' </proc/\$(systemctl show -p MainPID --value karmada-controller-manager)/cmdline" | matches 'Failover=true' || broken "the controllers of $h still do not move workloads"
  done
}
may_move

# One component alone, and back.
client_begins
karmada upgrade --component webhook
exits 0
new=$(runs h1 webhook)
for h in h1 h2 h3; do
  { [ "$(runs "$h" webhook)" = "$new" ] && [ "$new" != "$old" ]; } || broken "the webhook of $h is $(runs "$h" webhook)"
  [ "$(runs "$h" aggregated-apiserver)" = "$old" ] || broken "the aggregated API server of $h was upgraded, too"
done
karmada rollback --component webhook
exits 0
for h in h1 h2 h3; do [ "$(runs "$h" webhook)" = "$old" ] || broken "the webhook of $h is $(runs "$h" webhook)"; done
nobody_noticed

# One that fails half-way: the first scheduler does not come up. The components that may move workloads work again all the same.
begun=$SECONDS
client_begins
karmada upgrade -e '{"karmada_scheduler_extra_args": {"kube-api-qps": "many"}, "karmada_ready_retries": 20}'
exits 2
may_move
[ "$(runs h3 scheduler)" = "$old" ] || broken "the scheduler of h3 changed"
# Killed three times, it resumes each time.
for kill in 1 2 3; do
  lines=$((RANDOM % 200 + 20))
  echo "== seed $SEED: kill -9 after $lines lines"
  karmada_in_background "$scratch/told" upgrade
  while [ "$(wc -l <"$scratch/told")" -lt $lines ] && kill -0 $background 2>/dev/null; do sleep 0.02; done
  kill -9 $background 2>/dev/null || true
  wait $background 2>/dev/null || true
  tail -3 "$scratch/told"
done
karmada upgrade
exits 0
echo "the upgrade, failed once and killed three times, took $((SECONDS - begun)) s"
nobody_noticed
may_move
for h in h1 h2 h3; do on "$h" 'ls /var/backups/etcd 2>/dev/null || true'; done >"$scratch/snapshots"
[ "$(grep -c '\.db$' "$scratch/snapshots")" = 1 ] || broken "there is not one snapshot: $(cat "$scratch/snapshots")"
new=$(runs h1 scheduler)
[ "$new" != "$old" ] || broken "it is still $old"
kubectl scale deployment web --replicas=2
eventually has 2
for h in h1 h2 h3; do for c in webhook aggregated-apiserver controller-manager scheduler; do [ "$(runs "$h" "$c")" = "$new" ] || broken "$c on $h is $(runs "$h" "$c")"; done; done
karmada karmada
exits 0
nothing_changed
karmada status
exits 0

begun=$SECONDS
client_begins
karmada rollback
exits 0
echo "the way back took $((SECONDS - begun)) s"
nobody_noticed
for h in h1 h2 h3; do for c in webhook aggregated-apiserver controller-manager scheduler; do [ "$(runs "$h" "$c")" = "$old" ] || broken "$c on $h is $(runs "$h" "$c")"; done; done
kubectl scale deployment web --replicas=3
eventually has 3
[ "$(workload 'jsonpath={.metadata.uid}')" = "$uid" ] || broken "the workload was replaced"
karmada karmada "$before"
exits 0
karmada rollback
exits 2
says 'this host has no upgrade of karmada that could be rolled back'
