. "$ROOT/tests/e2e/karmada-lib.sh"
karmada site
exits 0
for h in h1 h2 h3; do
  for c in $components; do
    [ "$(on "$h" systemctl is-active "karmada-$c")" = active ] || broken "karmada-$c is not active on $h"
  done
done
eventually kubectl get clusters
held() { [ -n "$(kubectl -n "${1%/*}" get lease "${1#*/}" -o 'jsonpath={.spec.holderIdentity}')" ]; }
for lease in kube-system/kube-controller-manager karmada-system/karmada-controller-manager karmada-system/karmada-scheduler; do
  eventually held "$lease"
done
available() { [ "$(kubectl get apiservice "$1" -o 'jsonpath={.status.conditions[?(@.type=="Available")].status}')" = True ]; }
for service in $(kubectl get apiservices -o 'jsonpath={.items[?(@.spec.service)].metadata.name}'); do
  eventually available "$service"
done
karmada status
exits 0
