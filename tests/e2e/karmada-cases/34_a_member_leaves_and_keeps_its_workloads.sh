# Needs Karmada's own programs.
. "$ROOT/tests/e2e/karmada-lib.sh"
uid() { member_at "$1" -n shop get deployment web -o 'jsonpath={.metadata.uid}'; }
before=$(uid h5)
with_members '[members]' "$m1" '[del_member]' "$m2 member_workloads=keep"
# As long as an API is dead nobody leaves, and it is named.
kubectl apply -f - <<'END2'
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.dead.example.org}
spec: {group: dead.example.org, version: v1, groupPriorityMinimum: 100, versionPriority: 10, insecureSkipTLSVerify: true, service: {name: none, namespace: default}}
END2
dead() { kubectl get apiservice v1.dead.example.org -o 'jsonpath={.status.conditions[0].status}' | grep False; }
eventually dead
karmada del-member
exits 2
says 'm2 is not removed: .*v1.dead.example.org \('
kubectl delete apiservice v1.dead.example.org
karmada del-member --check
exits 0
says 'm2: keeps 2 objects of the control plane, which nobody manages afterwards: 1 Deployment, 1 Namespace'
joined m2 Pull || broken "check mode removed it"
karmada del-member
exits 0
says 'm2: keeps 2 objects of the control plane'
! kubectl get cluster m2 || broken "it is still there"
! kubectl get namespace karmada-es-m2 || broken "its namespace is still there"
[ "$(uid h5)" = "$before" ] || broken "the workload is not the one that it was"
! member_at h5 -n shop get deployment web -o 'jsonpath={.metadata.labels}' | grep karmada || broken "it is still marked as Karmada's"
! member_at h5 get namespace karmada-cluster || broken "accounts of the control plane are left"
! on h5 systemctl cat karmada-agent-m2 || broken "the agent is still installed"
! on h5 ls -d /etc/windlass || broken "something of the agent is left"
[ ! -e "$state/credentials/karmada/members/m2" ] || broken "credentials are left here"
joined m1 Push || broken "the other member is not well"
karmada del-member
exits 0
for h in h1 m2; do recap "$h" changed 0; done
