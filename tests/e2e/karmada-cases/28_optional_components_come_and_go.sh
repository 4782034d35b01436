# Needs Karmada's own programs.
. "$ROOT/tests/e2e/karmada-lib.sh"
with_members '[members]' "member-1 ${m1#m1 }"
optional='{"karmada_descheduler_enabled": true, "karmada_search_enabled": true, "karmada_metrics_adapter_enabled": true,
  "karmada_scheduler_estimator_enabled": true}'
available() { [ "$(kubectl get apiservice "$1" -o 'jsonpath={.status.conditions[?(@.type=="Available")].status}')" = True ]; }
karmada karmada -e "$optional"
exits 0
for h in h1 h2 h3; do
  for c in descheduler search metrics-adapter; do
    [ "$(on "$h" systemctl is-active "karmada-$c")" = active ] || broken "karmada-$c is not active on $h"
  done
done
for service in v1alpha1.search.karmada.io v1beta1.metrics.k8s.io v1beta1.custom.metrics.k8s.io v1beta2.custom.metrics.k8s.io; do
  available "$service" || broken "$service is not available"
done
# A node of the member is found by way of every host.
kubectl apply -f - <<'END2'
apiVersion: search.karmada.io/v1alpha1
kind: ResourceRegistry
metadata: {name: nodes}
spec:
  targetCluster: {clusterNames: [member-1]}
  resourceSelectors: [{apiVersion: v1, kind: Node}]
END2
found() { kubectl_at "$1" get --raw /apis/search.karmada.io/v1alpha1/search/cache/api/v1/nodes | grep '"name":"n1"'; }
for h in h1 h2 h3; do
  eventually found "$h"
  kubectl_at "$h" get --raw /apis/metrics.k8s.io/v1beta1/nodes | grep NodeMetricsList
  kubectl_at "$h" get --raw /apis/custom.metrics.k8s.io/v1beta2 | grep APIResourceList
done
[ -n "$(kubectl -n karmada-system get lease karmada-descheduler -o 'jsonpath={.spec.holderIdentity}')" ] || broken "no descheduler leads"
karmada status -e "$optional"
exits 0
says 'descheduler +h[123] +active +yes +yes'
says 'metrics-adapter +h3 +active +yes'
karmada karmada -e "$optional"
exits 0
nothing_changed
# Without one API nothing is left of it: a registered API that nobody answers for would hold up the end of every namespace.
karmada karmada
exits 0
for h in h1 h2 h3; do
  ! on "$h" ls -d /etc/windlass/karmada/search /opt/windlass/karmada/search /etc/systemd/system/karmada-search.service 2>/dev/null || broken "something of search is left on $h"
  ! on "$h" getent passwd karmada-descheduler || broken "the user karmada-descheduler is left on $h"
done
! on h1 ls -d /etc/windlass/karmada/estimator-member-1 2>/dev/null || broken "something of the estimator is left"
! kubectl -n karmada-system get service karmada-scheduler-estimator-member-1 || broken "schedulers are still led to the estimator"
! available v1alpha1.search.karmada.io || broken "the API of search is still registered"
kubectl create namespace short
kubectl delete namespace short --timeout=60s
