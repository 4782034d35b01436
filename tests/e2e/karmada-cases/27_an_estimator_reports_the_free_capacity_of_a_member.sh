# Needs Karmada's own programs.
. "$ROOT/tests/e2e/karmada-lib.sh"
# Two nodes with room for one replica and more; one has the disk.
for node in n1:fast:1 n2:slow:4; do
  IFS=: read -r name disk cpu <<<"$node"
  member apply -f - <<END2
apiVersion: v1
kind: Node
metadata: {name: $name, labels: {disk: $disk}}
END2
  member patch node "$name" --subresource=status --type=merge -p "{\"status\": {
    \"allocatable\": {\"cpu\": \"$cpu\", \"memory\": \"8Gi\", \"pods\": \"50\"},
    \"conditions\": [{\"type\": \"Ready\", \"status\": \"True\", \"reason\": \"Test\", \"message\": \"-\", \"lastHeartbeatTime\": \"2026-01-01T00:00:00Z\", \"lastTransitionTime\": \"2026-01-01T00:00:00Z\"}]}}"
  member patch node "$name" --type=merge -p '{"spec": {"taints": null}}'
done

# The member joins, and gets estimators that log in as an account which may only look.
with_members '[members]' "member-1 ${m1#m1 }"
members='{"karmada_scheduler_estimator_enabled": true}'
karmada karmada -e "$members"
exits 0
karmada add-member -e "$members"
exits 0
[ "$(member auth can-i --list --as system:serviceaccount:karmada-cluster:windlass-estimator | grep -cE 'nodes|deployments')" -ge 1 ] || broken "it may not look"
! member auth can-i get secrets --as system:serviceaccount:karmada-cluster:windlass-estimator || broken "it may read secrets"
for h in h1 h2 h3; do
  [ "$(on "$h" systemctl is-active karmada-estimator-member-1)" = active ] || broken "no estimator runs on $h"
  [ "$(on "$h" "stat -c '%U %a' /etc/windlass/karmada/estimator-member-1/pki/member.kubeconfig")" = 'karmada-estimator-member-1 600' ] || broken "others can read the kubeconfig on $h"
done
karmada status -e "$members"
exits 0
says 'estimator-member-1 +h2 +active +yes'

# By what the cluster says of itself there is room for two; the estimator looks at nodes, and only one has the disk.
kubectl create namespace room
kubectl apply -f - <<'END2'
apiVersion: apps/v1
kind: Deployment
metadata: {name: disk, namespace: room}
spec:
  replicas: 2
  selector: {matchLabels: {app: disk}}
  template:
    metadata: {labels: {app: disk}}
    spec:
      nodeSelector: {disk: fast}
      containers: [{name: c, image: none, resources: {requests: {cpu: "1"}}}]
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: disk, namespace: room}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: disk}]
  placement:
    clusterAffinity: {clusterNames: [member-1]}
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}
END2
why() { kubectl -n room get resourcebinding disk-deployment -o 'jsonpath={.status.conditions[?(@.type=="Scheduled")].message}'; }
one() { why | grep 'available replicas 1 are not enough'; }
eventually one
why
kubectl -n room scale deployment disk --replicas=1
fits() { member -n room get deployment disk -o 'jsonpath={.spec.replicas}' | grep -x 1; }
eventually fits
karmada karmada -e "$members"
exits 0
nothing_changed
