# Takes its turn: every third day, with stand-ins.
. "$ROOT/tests/e2e/karmada-lib.sh"
# What cannot be applied is refused by the plan, before the first stage changes a host.
fresh
hosts reset h4
rm -rf "$state/members"
member_up h4
file=$state/refused.yaml
write() {
  skeleton h1 | sed "s#^  controlPlane:#  $1\n&#"
  printf '  members:\n    - name: north\n      kubeconfig: {file: members/%s}\n' "${2:-h4.kubeconfig}"
}
refused() {
  trees >"$scratch/before"
  site plan "$@"
  exits 1
  says '^Nothing can be applied: '
  site apply --yes "$@"
  exits 1
  says '^error: windlass changed nothing, because stage [a-zA-Z]+ is refused'
  trees >"$scratch/after"
  same_trees "$scratch/before" "$scratch/after"
}

# A bundle without Karmada's programs: etcd alone would have been installed.
write '' >"$file"
mkdir "$scratch/bundle"
cp -r "$WINDLASS_BUNDLE/." "$scratch/bundle/"
find "$scratch/bundle" -type f -name 'karmada-*' -delete
rm -f "$scratch/bundle/manifest.yaml"
refused -e "karmada_bundle=$scratch/bundle"
says '^controlPlane: refused$'
# Too little space.
hosts shrink h1 /opt/windlass 300m
refused
says '^  cp-1: space: /opt/windlass has [0-9]+ MB free and needs 1024 MB'
hosts unmount h1 /opt/windlass

# On bare hosts a plan says what members wait for. A member without a kubeconfig is known before anything is installed.
site plan
exits 0
says '^members: needs controlPlane first \(no API server answers yet\): north$'
says '^To do: .*; after that members\.$'
write '' lost.kubeconfig >"$file"
site plan
exits 2
says '^  north: north: there is no kubeconfig .*lost\.kubeconfig on the controller'
says '^Not done: north is refused\.$'
# It holds up nothing else.
site apply --yes
exits 2
[ "$(on h1 systemctl is-active karmada-scheduler)" = active ] || broken "there is no control plane"
write '' >"$file"
site apply --yes
exits 0
joined north Push || broken "north is not a member"
# Rejected credentials of a member, while a flag changes.
write 'components: {karmadaScheduler: {extraArgs: {kube-api-burst: "78"}}}' bad.kubeconfig >"$file"
sed -E 's#(client-certificate-data|client-key-data|token): .*#token: wrong#' "$state/members/h4.kubeconfig" >"$state/members/bad.kubeconfig"
site apply --yes
exits 2
says '^  north: '
on h1 grep -q kube-api-burst=78 /etc/systemd/system/karmada-scheduler.service || broken "the flag is missing"

# All of etcd is stopped: etcd comes first, then the control plane is checked.
write '' >"$file"
on h1 systemctl stop etcd
site plan
exits 0
says '^controlPlane: needs etcd first \(etcd has no majority: '
site apply --yes
exits 0
says 'applying controlPlane: '
site apply --yes
exits 0
says '^Nothing to do\.$'
hosts reset h4
