. "$ROOT/tests/e2e/karmada-lib.sh"
karmada site
exits 0
for h in h1 h2 h3; do
  for c in $components; do
    [ "$(on "$h" systemctl is-active "karmada-$c")" = active ] || broken "karmada-$c is not active on $h"
  done
done
eventually kubectl get clusters
for lease in kube-system/kube-controller-manager karmada-system/karmada-controller-manager karmada-system/karmada-scheduler; do
  [ -n "$(kubectl -n "${lease%/*}" get lease "${lease#*/}" -o 'jsonpath={.spec.holderIdentity}')" ] || broken "nobody holds $lease"
done
for service in $(kubectl get apiservices -o 'jsonpath={.items[?(@.spec.service)].metadata.name}'); do
  [ "$(kubectl get apiservice "$service" -o 'jsonpath={.status.conditions[?(@.type=="Available")].status}')" = True ] || broken "$service is not available"
done
karmada status
exits 0
