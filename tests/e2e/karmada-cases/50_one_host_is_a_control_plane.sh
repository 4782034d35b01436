# Needs Karmada's own programs.
. "$ROOT/tests/e2e/karmada-lib.sh"
fresh
one_host
karmada site
exits 0
for c in $components; do
  [ "$(on h1 systemctl is-active "karmada-$c")" = active ] || broken "karmada-$c is not active"
done
eventually kubectl get clusters
for lease in kube-system/kube-controller-manager karmada-system/karmada-controller-manager karmada-system/karmada-scheduler; do
  [ -n "$(kubectl -n "${lease%/*}" get lease "${lease#*/}" -o 'jsonpath={.spec.holderIdentity}')" ] || broken "nobody holds $lease"
done
karmada site
exits 0
recap h1 changed 0
