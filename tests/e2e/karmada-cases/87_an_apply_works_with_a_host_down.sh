# Takes its turn: every third day, with stand-ins.
. "$ROOT/tests/e2e/karmada-lib.sh"
# One of three hosts has lost its power: apply does what it can with the others, and the rest when the host is back.
fresh
hosts reset h4
rm -rf "$state/members"
member_up h4
file=$state/down.yaml
write() {
  skeleton h1 h2 h3 | sed "s#^  controlPlane:#  $1\n&#"
  [ -z "$2" ] || printf '  members:\n    - name: north\n      kubeconfig: {file: members/h4.kubeconfig}\n'
}
flag='components: {karmadaScheduler: {extraArgs: {kube-api-burst: "78"}}}'
has_flag() { on "$1" grep -q kube-api-burst=78 /etc/systemd/system/karmada-scheduler.service; }
write '' '' >"$file"
site apply --yes
exits 0

hosts kill h3
write "$flag" member >"$file"
site plan -T 20
exits 4
says '^skipped, because they do not answer: cp-3$'
says '^controlPlane: 2 hosts$'
says '^Not done on cp-3: run this again when they answer\.$'
site plan -T 20 -o "$scratch/plan.json"
exits 4
site apply -T 20 --yes
exits 4
for host in h1 h2; do has_flag "$host" || broken "the flag is missing on $host"; done
joined north Push || broken "north is not a member"
# Only what cp-3 lacks is left.
site apply -T 20 --yes
exits 4
says '^Nothing to do\.$'
# A member leaves with the host down, too.
write "$flag" '' >"$file"
site apply -T 20 --yes
exits 4
! kubectl get cluster north || broken "north is still a member"

# One of its hosts is not enough for etcd: nothing is changed, and the plan says why.
hosts kill h2
write '' '' >"$file"
site apply -T 20 --yes
exits 4
says '^Nothing can be applied: etcd, controlPlane'
has_flag h1 || broken "h1 was changed"
hosts start h2
hosts start h3
eventually kubectl get --raw /readyz

# The hosts are back: a plan of before does not count any more, a limit leaves hosts out, and apply completes the rest.
write "$flag" '' >"$file"
windlass apply "$scratch/plan.json" --playbooks "$ROOT/playbooks" ${WINDLASS_STAND_INS:+-e "@$WINDLASS_STAND_INS"} --yes
exits 1
says 'cp-3: the host was removed|windlass changed nothing'
site plan --limit cp-9
exits 1
says '--limit cp-9 names no host'
site apply --yes --limit cp-1
exits 0
says '^limited to cp-1$'
! has_flag h3 || broken "cp-3 was changed"
site apply --yes
exits 0
has_flag h3 || broken "the flag is missing on h3"
site apply --yes
exits 0
says '^Nothing to do\.$'
hosts reset h4
