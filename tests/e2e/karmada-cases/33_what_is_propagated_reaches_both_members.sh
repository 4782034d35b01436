# Needs Karmada's own programs.
. "$ROOT/tests/e2e/karmada-lib.sh"
kubectl create namespace shop
kubectl annotate namespace shop work.karmada.io/conflict-resolution=overwrite
kubectl apply -f - <<'END2'
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: none}]}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  conflictResolution: Overwrite
  placement: {clusterAffinity: {clusterNames: [m1, m2]}}
END2
for h in h4 h5; do
  there() { member_at "$h" -n shop get deployment web; }
  eventually there
done
# An add-on of one member goes to it and to the control plane.
mkdir -p "$state/addons"
printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: addon, namespace: default}\ndata: {of: m1}\n' >"$state/addons/one.yaml"
with_members '[members]' "$m1 member_addons='[{\"name\": \"one\", \"to\": [\"member\", \"control_plane\"], \"src\": [\"addons\"]}]'" "$m2"
karmada add-member
exits 0
member -n default get configmap addon
kubectl -n default get configmap addon
! member_at h5 -n default get configmap addon || broken "it is in the other member, too"
karmada add-member
exits 0
recap m1 changed 0
# Workloads stay as they are whenever it is run.
uid() { member_at "$1" -n shop get deployment web -o 'jsonpath={.metadata.uid} {.metadata.generation}'; }
{ uid h4; uid h5; } >"$scratch/before"
karmada add-member
exits 0
{ uid h4; uid h5; } >"$scratch/after"
cmp "$scratch/before" "$scratch/after" || broken "a workload was created again"
