# Needs Karmada's own programs.
# And those of the version before, in WINDLASS_BUNDLE_BEFORE: without, nothing is tested.
. "$ROOT/tests/e2e/karmada-lib.sh"
[ -n "${WINDLASS_BUNDLE_BEFORE:-}" ] || { echo "there is no WINDLASS_BUNDLE_BEFORE: nothing is tested"; exit 0; }
fresh
with_load_balancer
before=-ekarmada_bundle=$WINDLASS_BUNDLE_BEFORE
karmada site "$before"
exits 0
old=$(runs h1 scheduler)
kubectl create deployment web --image=nginx
uid=$(kubectl get deployment web -o 'jsonpath={.metadata.uid}')

# What cannot be is refused before any host is touched.
karmada karmada
exits 2
says 'upgrade.yml changes versions'
nothing_touched
karmada upgrade -e component=scheduler
exits 2
says 'before scheduler comes .*webhook'
karmada upgrade -e component=apiservers
exits 2
says 'component is apiservers: it is one of'
karmada upgrade -e '{"karmada_aggregated_apiserver_feature_gates": {"DeclarativeValidation": true}}'
exits 2
says 'has no feature gate DeclarativeValidation'
karmada rollback
exits 2
says 'no upgrade of karmada has been made here'
nothing_touched

begun=$SECONDS
client_begins
karmada upgrade
exits 0
echo "the upgrade took $((SECONDS - begun)) s"
nobody_noticed
says 'snapshot of etcd on h[123]: /var/backups/etcd/'
new=$(runs h1 scheduler)
[ "$new" != "$old" ] || broken "it is still $old"
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
[ "$(kubectl get deployment web -o 'jsonpath={.metadata.uid}')" = "$uid" ] || broken "the workload is another one"
karmada karmada "$before"
exits 0
karmada rollback
exits 2
says 'no upgrade of karmada has been made here'
