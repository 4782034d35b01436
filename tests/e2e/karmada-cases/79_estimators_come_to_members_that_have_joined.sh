# Takes its turn: every third day, with stand-ins. At its end the member dies, and is removed by force (with real programs: 35_*).
. "$ROOT/tests/e2e/karmada-lib.sh"
fresh
hosts reset h4
rm -rf "$state/members"
member_up h4
file=$state/estimators.yaml
write() {
  skeleton h1 | sed "s#^  controlPlane:#  $1\n&#"
  printf '  members:\n    - name: north\n      kubeconfig: {file: members/h4.kubeconfig}\n'
}
asked_for='components: {karmadaSchedulerEstimator: {}}'
estimator() { on h1 systemctl is-active karmada-estimator-north; }

# The member joins without one.
write '' >"$file"
site apply --yes
exits 0
joined north Push || broken "north is not a member"
site status
exits 0
does_not_say estimator-

# Asked for and not there yet: status reports it, the plan has it, and apply brings it.
write "$asked_for" >"$file"
site status
exits 2
says '^unhealthy: estimator-north on cp-1: it is not installed'
site plan -v
exits 0
says '^members: '
says 'karmada-estimator-north\.service'
says 'windlass-estimator'
[ ! -e "$state/credentials/karmada/members/north" ] || broken "the plan wrote a kubeconfig"
site apply --yes
exits 0
[ "$(estimator)" = active ] || broken "no estimator runs"
site status
exits 0
says 'estimator-north +cp-1 +active +yes'
site apply --yes
exits 0
says '^Nothing to do\.$'

# One that is missing comes back.
on h1 'systemctl disable --now karmada-estimator-north; rm -r /etc/systemd/system/karmada-estimator-north.service /opt/windlass/karmada/estimator-north'
site status
exits 2
says '^unhealthy: estimator-north on cp-1: it is not installed'
site apply --yes
exits 0
[ "$(estimator)" = active ] || broken "no estimator runs"

# The controller lost its kubeconfig while the member cannot be reached: the estimator keeps running, and gets it again later.
rm "$state/credentials/karmada/members/north/estimator.kubeconfig"
sed -i.there -E 's#(server: https://.*):[0-9]+#\1:1#' "$state/members/h4.kubeconfig"
site apply --yes
exits 2
[ "$(estimator)" = active ] || broken "the estimator was removed"
mv "$state/members/h4.kubeconfig.there" "$state/members/h4.kubeconfig"
site apply --yes
exits 0
[ "$(estimator)" = active ] || broken "no estimator runs"
[ -e "$state/credentials/karmada/members/north/estimator.kubeconfig" ] || broken "no kubeconfig was written"

# No longer asked for: it goes.
write '' >"$file"
site apply --yes
exits 0
found=$(on h1 'systemctl is-active karmada-estimator-north || true')
[ "$found" != active ] || broken "the estimator still runs"
site status
exits 0
does_not_say estimator-

# The member dies. By mistake nothing is removed by force; then by a saved plan.
site plan --remove-by-force north
exits 1
says 'north is still a member: remove its lines before you remove it by force'
hosts kill h4
skeleton h1 >"$file"
site apply --yes
exits 2
says 'north is not removed: it is unreachable'
says 'run windlass apply --remove-by-force north, or name it in removeByForce$'
joined north Push || broken "north was removed"
site plan --limit north
exits 2
says '^limited to north$'
says 'north is not removed: it is unreachable'
site plan --remove-by-force nowhere
exits 1
says 'nowhere cannot be removed by force: windlass knows no such member of the control plane'
site plan --remove-by-force north -o "$scratch/plan"
exits 0
says '^removed even if they do not answer: north$'
says '^removals: to remove: north$'
says '^  north is unreachable. These objects stay in it:$'
says '^    Namespace karmada-cluster, with accounts and tokens$'
joined north Push || broken "the plan removed north"
windlass apply "$scratch/plan" --playbooks "$ROOT/playbooks" ${WINDLASS_STAND_INS:+-e "@$WINDLASS_STAND_INS"} --yes
exits 0
! kubectl get cluster north || broken "north is still a member"
site apply --yes
exits 0
says '^Nothing to do\.$'
hosts start h4
hosts reset h4
