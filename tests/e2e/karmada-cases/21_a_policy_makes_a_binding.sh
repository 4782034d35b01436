# Needs Karmada's own programs.
. "$ROOT/tests/e2e/karmada-lib.sh"
kubectl create deployment web --image=nginx --replicas=2
kubectl apply -f - <<'END'
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement: {clusterAffinity: {clusterNames: [nowhere]}}
END
eventually kubectl get resourcebinding web-deployment
kubectl create secret generic hidden --from-literal=word=sesame
# In etcd it is encrypted.
etcdctl get /registry/secrets/default/hidden | matches 'k8s:enc:secretbox' || broken "the secret is not encrypted in etcd"
! etcdctl get /registry/secrets/default/hidden | matches sesame || broken "the secret is plain in etcd"
"$(bundled karmadactl)" --kubeconfig "$kubeconfig" get clusters || broken "karmadactl does not work"
