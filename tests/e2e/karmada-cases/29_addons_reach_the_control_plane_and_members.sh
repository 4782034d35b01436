# Needs Karmada's own programs.
. "$ROOT/tests/e2e/karmada-lib.sh"
mkdir -p "$scratch/pack"
cat >"$scratch/pack/1-definition.yaml" <<'END2'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: meshes.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Mesh, plural: meshes, singular: mesh}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}}
END2
cat >"$scratch/pack/2-object.yaml" <<'END2'
apiVersion: v1
kind: Namespace
metadata: {name: mesh}
---
apiVersion: example.org/v1
kind: Mesh
metadata: {name: main}
spec: {size: 3}
END2
# One file says all: an inventory's variables.
with_members '[members]' "member-1 ${m1#m1 }"
cat >"$scratch/addons.yml" <<END2
karmada_host_cluster_kubeconfig: $member_kubeconfig
karmada_addons:
  - {name: mesh, to: [control_plane, members], src: [$scratch/pack], namespace: mesh}
END2
karmada addons --check --diff -e "@$scratch/addons.yml"
exits 0
! kubectl get crd meshes.example.org || broken "check mode applied it"
karmada addons -e "@$scratch/addons.yml"
exits 0
[ "$(kubectl -n mesh get mesh main -o 'jsonpath={.spec.size}')" = 3 ] || broken "it is not in the control plane"
[ "$(member -n mesh get mesh main -o 'jsonpath={.spec.size}')" = 3 ] || broken "it is not in the member"
karmada addons -e "@$scratch/addons.yml"
exits 0
nothing_changed
# By a name that nobody has, and a file that is not there: all is refused before anything is applied.
karmada addons -e "@$scratch/addons.yml" -e '{"karmada_addons": [{"name": "a", "to": ["member-2"], "src": ["/etc/hosts"]}]}'
exits 2
says 'the add-on a is for unknown clusters: member-2\. Known are control_plane, host_cluster, member-1'
karmada addons -e "@$scratch/addons.yml" -e '{"karmada_addons": [{"name": "a", "to": ["members"], "src": ["nowhere"]}]}'
exits 2
says 'the add-on a has no file .*/nowhere'
# To one cluster, by its other name; and away from both.
sed -i 's/to: .*\], src/to: [host_cluster], src/; s/namespace: mesh/namespace: mesh, state: absent/' "$scratch/addons.yml"
karmada addons -e "@$scratch/addons.yml"
exits 0
! member get crd meshes.example.org || broken "it is still in the member"
kubectl get crd meshes.example.org || broken "it is gone from the control plane too"
sed -i 's/to: .*\], src/to: [control_plane], src/' "$scratch/addons.yml"
karmada addons -e "@$scratch/addons.yml"
exits 0
! kubectl get namespace mesh || broken "it is still in the control plane"

# The member leaves as it came.
with_members '[del_member]' "member-1 ${m1#m1 }"
karmada del-member
exits 0
! kubectl get cluster member-1 || broken "the member is still there"
! member get namespace karmada-cluster || broken "accounts of the control plane are left in it"
