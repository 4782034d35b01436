# Needs Karmada's own programs.
. "$ROOT/tests/e2e/karmada-lib.sh"
address=$(address_of h1)
vip=${address%.*}.200
has() { on "$1" "ip address $2 $vip/32 dev \$(ip -o -4 address show | grep -w '$(address_of "$1")' | tr -s ' ' | cut -d' ' -f2)"; }
outside() { kubectl get clusters && "$(bundled karmadactl)" --kubeconfig "$kubeconfig" get clusters; }
# What would make no certificate is refused before any host is touched.
karmada karmada -e "karmada_endpoint=https://$vip"
exits 2
says 'karmada_endpoint is https://.*: it must be a name or an address'

has h2 replace
karmada karmada -e "karmada_endpoint=$vip"
exits 0
grep -q "server: https://$vip:5443" "$kubeconfig" || broken "the kubeconfig leads elsewhere"
outside
kubectl -n kube-public get configmap cluster-info -o 'jsonpath={.data.kubeconfig}' | grep "server: https://$vip:5443"
# The host that has the address answers for it.
has h2 del
has h3 replace
eventually outside
has h3 del
# Without one, clients are led to the first host.
karmada karmada
exits 0
grep -q "server: https://$address:5443" "$kubeconfig" || broken "the kubeconfig leads elsewhere"
outside
