# Needs Karmada's own programs.
. "$ROOT/tests/e2e/karmada-lib.sh"
fresh
member_down
member_up
file=$state/two.yaml
mkdir -p "$state/manifests"
printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {said: here}\n' >"$state/manifests/note.yaml"
# Hooks are run with their stage, and see what it did.
hook() { printf -- '- hosts: etcd\n  become: true\n  gather_facts: false\n  tasks:\n    - {ansible.builtin.shell: "echo %s >>/root/hooks"}\n' "$1"; }
hook 'before: $(systemctl is-active etcd)' >"$state/manifests/before.yml"
hook 'after: $(systemctl is-active karmada-apiserver)' >"$state/manifests/after.yml"
write() {
  skeleton h1 h2 | sed "/name: cp-2,/s#}#$1}#"
  printf '  hooks:\n    - {stage: etcd, when: before, playbook: manifests/before.yml}\n    - {stage: controlPlane, when: after, playbook: manifests/after.yml}\n'
  printf '  members:\n    - name: north\n      kubeconfig: {file: members/h4.kubeconfig}\n'
  printf '      addons: [{name: note, src: [manifests/note.yaml], to: [member, control_plane], namespace: default%s}]\n' "$2"
}

# What a member brings with it goes to the member, to the control plane, or to both.
write "" "" >"$file"
site apply --yes
exits 0
joined north Push || broken "north is not a member"
[ "$(on h1 cat /root/hooks | tr '\n' ' ')" = 'before: inactive after: active ' ] || broken "the hooks were not run around their stages: $(on h1 cat /root/hooks)"
[ "$(member get configmap note -o 'jsonpath={.data.said}')" = here ] || broken "it is not in the member"
[ "$(kubectl get configmap note -o 'jsonpath={.data.said}')" = here ] || broken "it is not in the control plane"
[ "$(on h2 systemctl is-active karmada-apiserver)" = active ] || broken "cp-2 has no API server"
site apply --yes
exits 0
says '^Nothing to do\.$'

# A host that is to be reset loses what was installed there; the others keep what they have. An add-on that is absent goes.
write ", reset: true" ", state: absent" >"$file"
site apply --yes
exits 0
found=$(on h2 'ls /etc/systemd/system | grep ^karmada- ; ls -d /etc/windlass/karmada/* /opt/windlass/karmada/* 2>/dev/null || true')
[ -z "$found" ] || broken "something is left on cp-2"
for c in $components; do [ "$(on h1 systemctl is-active "karmada-$c")" = active ] || broken "karmada-$c is not active on cp-1"; done
joined north Push || broken "north is not a member any more"
! member get configmap note || broken "the add-on is still in the member"
! kubectl get configmap note || broken "the add-on is still in the control plane"
site apply --yes
exits 0
says '^Nothing to do\.$'
site status
exits 0
does_not_say 'unhealthy'
member_down
