. "$ROOT/tests/e2e/karmada-lib.sh"
for dead in h1 h2 h3; do
  hosts kill "$dead"
  for h in h1 h2 h3; do
    [ "$h" = "$dead" ] && continue
    write() { kubectl_at "$h" create configmap "without-$dead-by-$h" && kubectl_at "$h" get clusters; }
    eventually write
  done
  hosts start "$dead"
  eventually on "$dead" systemctl is-active karmada-apiserver
done
eventually kubectl get --raw /readyz
karmada karmada
exits 0
