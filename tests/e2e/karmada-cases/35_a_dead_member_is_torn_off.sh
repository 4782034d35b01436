# Needs Karmada's own programs.
. "$ROOT/tests/e2e/karmada-lib.sh"
hosts kill h4
not_ready() { [ "$(kubectl get cluster m1 -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')" = False ]; }
for _ in 1 2 3; do eventually not_ready && break; done
with_members '[del_member]' "$m1 member_workloads=keep"
karmada del-member
exits 2
says 'm1 stays: it is not ready since .* \(ClusterNotReachable: '
says 'member_force: true removes it all the same'
kubectl get cluster m1 || broken "it was removed"
karmada del-member -e member_force=true
exits 0
says 'm1: 2 objects of the control plane stay in it, as it is not ready'
says 'm1 was not reached. Left in it are:'
says 'Deployment shop/web'
says 'Namespace karmada-cluster, with accounts and tokens'
! kubectl get cluster m1 || broken "it is still there"
! kubectl get namespace karmada-es-m1 || broken "its namespace is still there"
