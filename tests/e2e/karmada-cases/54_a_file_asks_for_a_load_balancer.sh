# Needs Karmada's own programs.
. "$ROOT/tests/e2e/karmada-lib.sh"
fresh
with_load_balancer
file=$state/balanced.yaml
packages=$(printf '"%s", ' "$ROOT"/target/debian-balancer/cache/archives/*.deb)
skeleton h1 h2 h3 | sed -e "s#^    hosts: \[cp-1, cp-2, cp-3\]#&\n    @@#" |
  sed "0,/^    @@/s#^    @@#    loadBalancer: {virtualAddress: $(vip), packageFiles: [${packages%, }]}#; /^    @@/d" >"$file"
grep -A3 '^  controlPlane' "$file"
site apply --yes
exits 0
grep -q "server: https://$(vip):6443" "$kubeconfig" || broken "the kubeconfig leads elsewhere"
kubectl get clusters
for h in h1 h2 h3; do [ "$(balanced h1 "${h/h/cp-}")" = UP ] || broken "$h is not led to"; done
# The host that carries the address dies: another one does.
for h in h1 h2 h3; do on "$h" ip -br address | matches "$(vip)/" && holder=$h; done
hosts kill "$holder"
eventually kubectl get clusters
hosts start "$holder"
eventually on "$holder" systemctl is-active karmada-apiserver
well() { site status && [ "$code" = 0 ]; }
eventually well
site apply --yes
exits 0
says '^Nothing to do\.$'
site destroy --name production
exits 0
