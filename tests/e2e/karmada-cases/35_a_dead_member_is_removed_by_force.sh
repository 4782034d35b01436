# Needs Karmada's own programs.
. "$ROOT/tests/e2e/karmada-lib.sh"
hosts kill h4
not_ready() { [ "$(kubectl get cluster m1 -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')" = False ]; }
for _ in 1 2 3; do eventually not_ready && break; done
with_members '[del_member]' "$m1 member_workloads=keep"
karmada del-member
exits 2
says 'm1 is not removed: it has not been ready since .* \(ClusterNotReachable: '
says 'To remove it anyway and leave its objects in it, set member_force: true'
kubectl get cluster m1 || broken "it was removed"
karmada del-member -e member_force=true
exits 0
says 'm1: keeps 2 objects of the control plane, because it has not been ready'
says 'm1 is unreachable\. These objects stay in it:'
says 'Deployment shop/web'
says 'Namespace karmada-cluster, with accounts and tokens'
! kubectl get cluster m1 || broken "it is still there"
! kubectl get namespace karmada-es-m1 || broken "its namespace is still there"
