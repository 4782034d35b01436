# Needs Karmada's own programs.
. "$ROOT/tests/e2e/karmada-lib.sh"
# It needs no more rights in the member than these.
member apply -f - <<'END2'
apiVersion: v1
kind: ServiceAccount
metadata: {name: estimator, namespace: kube-system}
---
apiVersion: v1
kind: Secret
metadata: {name: estimator, namespace: kube-system, annotations: {kubernetes.io/service-account.name: estimator}}
type: kubernetes.io/service-account-token
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: estimator}
rules:
  - {apiGroups: [""], resources: [nodes, pods, resourcequotas], verbs: [list, watch]}
  - {apiGroups: [apps], resources: [deployments, replicasets], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: estimator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: estimator}
subjects: [{kind: ServiceAccount, name: estimator, namespace: kube-system}]
END2
token() { member -n kube-system get secret estimator -o 'jsonpath={.data.token}' | grep .; }
eventually token
cat >"$state/estimator.kubeconfig" <<END2
apiVersion: v1
kind: Config
clusters: [{name: member, cluster: {server: "https://$(address_of h3):6443", certificate-authority-data: $(base64 -w0 "$state/members/pki/ca.crt")}}]
users: [{name: estimator, user: {token: "$(token | base64 -d)"}}]
contexts: [{name: member, context: {cluster: member, user: estimator}}]
current-context: member
END2

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

# Refused before any host is touched: what the hosts could not use.
printf 'clusters: []\nusers: [{name: x, user: {exec: {command: log-in}}}]\n' >"$scratch/bad.kubeconfig"
karmada karmada -e '{"karmada_scheduler_estimator_enabled": true}' -e "{\"karmada_members\": [{\"name\": \"member-1\", \"kubeconfig\": \"$scratch/bad.kubeconfig\"}]}"
exits 2
says 'kubeconfig of member-1, has exec'

members='{"karmada_scheduler_estimator_enabled": true, "karmada_members": [{"name": "member-1", "kubeconfig": "members/h3.kubeconfig", "estimator_kubeconfig": "estimator.kubeconfig"}]}'
karmada karmada -e "$members"
exits 0
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
