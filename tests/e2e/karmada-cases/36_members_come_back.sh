# Needs Karmada's own programs.
. "$ROOT/tests/e2e/karmada-lib.sh"
hosts start h4
member_up
eventually member get --raw /livez
uid() { member_at "$1" -n shop get deployment web -o 'jsonpath={.metadata.uid}'; }
{ uid h4; uid h5; } >"$scratch/before"
with_members '[members]' "$m1" "$m2"
karmada add-member
exits 0
joined m1 Push || broken "m1 has not joined"
joined m2 Pull || broken "m2 has not joined"
# The policy and the annotation of the namespace say so: what had stayed is taken over as it is.
applied() { [ "$(kubectl -n "karmada-es-$1" get work -o 'jsonpath={range .items[*]}{.spec.workload.manifests[0].kind}={.status.conditions[?(@.type=="Applied")].status} {end}' | tr ' ' '\n' | grep -cxE '(Deployment|Namespace)=True')" = 2 ]; }
eventually applied m1
eventually applied m2
{ uid h4; uid h5; } >"$scratch/after"
cmp "$scratch/before" "$scratch/after" || broken "a workload was created again"
# And away, with what is in it, by what was recorded and kept in the control plane alone: nobody says where a kubeconfig is.
with_members '[del_member]' 'm1 ansible_connection=local'
karmada del-member
exits 0
says 'm1: loses 2 objects of the control plane \(1 Deployment, 1 Namespace\), with everything in these namespaces: shop"?$'
! member -n shop get deployment web || broken "the workload is still there"
clean() { ! member get namespace karmada-cluster && ! member get clusterrole -o name | grep -E 'karmada|windlass'; }
eventually clean
with_members '[del_member]' "$m2"
karmada del-member
exits 0
kubectl delete namespace shop
