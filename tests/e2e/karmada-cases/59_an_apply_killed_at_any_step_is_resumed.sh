# Needs Karmada's own programs.
. "$ROOT/tests/e2e/karmada-lib.sh"
# kill -9 in every stage of an apply, after a number of lines that the seed says, and now and then the power of a host or of a
# member, too; the next apply, from this machine or from another, continues and converges. SEED chooses others.
fresh
member_down
member_up
SEED=${SEED:-$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}
RANDOM=$SEED
echo "seed $SEED"
file=$state/steps.yaml
write() {
  skeleton h1 h2 h3 | sed "s#^    - {name: cp-3.*#&\n    - {name: south-1, address: $(address_of h5), user: root}#"
  printf '  members:\n    - name: south\n      syncMode: Pull\n      kubeconfigOnHost: {host: south-1, path: /srv/member/kubeconfig}\n      agent: {host: south-1}\n'
  [ "$1" = without ] || printf '    - name: north\n      kubeconfig: {file: members/h4.kubeconfig}\n      workloads: keep\n'
}
# Another machine, as the lock sees it: other processes, another name.
printf '#!/bin/sh\nexec unshare --fork --pid --mount-proc --uts sh -c '"'hostname elsewhere; exec \"\$0\" \"\$@\"'"' %q "$@"\n' "$WINDLASS" >"$scratch/elsewhere"
chmod +x "$scratch/elsewhere"

# killed STAGE LINES: the apply is killed so many lines after it has begun the stage, unless it ends before.
killed() {
  local told=$scratch/told from
  : >"$told"
  "$WINDLASS" apply -f "$file" --playbooks "$ROOT/playbooks" --yes >"$told" 2>&1 </dev/null &
  local pid=$!
  until grep -aqE "applying $1: " "$told" || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
  from=$(grep -anE "applying $1: " "$told" | head -1 | cut -d: -f1)
  while [ "$(wc -l <"$told")" -lt $((${from:-0} + $2)) ] && kill -0 $pid 2>/dev/null; do sleep 0.02; done
  kill -9 $pid 2>/dev/null || true
  wait $pid 2>/dev/null || true
  tail -4 "$told"
  [ -n "$from" ] || broken "it never came to $1"
}
converges() {
  local here=$WINDLASS
  [ $((RANDOM % 2)) = 0 ] || WINDLASS=$scratch/elsewhere
  windlass apply -f "$file" --playbooks "$ROOT/playbooks" --yes --max-removals 2
  WINDLASS=$here
  exits 0
  windlass apply -f "$file" --playbooks "$ROOT/playbooks" --yes
  exits 0
  says '^Nothing to do\.$'
  [ "$(etcdctl member list | grep -c started)" = 3 ] || broken "etcd has not three members"
}
power() {
  hosts kill "$1"
  hosts start "$1"
  eventually on "$1" true
}

write with >"$file"
for stage in etcd:60 controlPlane:150 members:40; do
  lines=$((RANDOM % ${stage#*:} + 1)) victim=h$((RANDOM % 5 + 1)) cut=$((RANDOM % 3))
  echo "== seed $SEED: kill -9 in ${stage%:*} after $lines lines$([ $cut != 0 ] || echo ", and the power of $victim")"
  killed "${stage%:*}" $lines
  [ $cut != 0 ] || power $victim
  # The rest of a killed stage is resumed; a later stage is killed in its turn.
done
converges
joined north Push || broken "north is not a member"
joined south Pull || broken "south is not a member"
[ "$(kubectl get clusters -o name | wc -l)" = 2 ] || broken "there are not two clusters"

# Something is propagated, which must stay in the member that leaves, with its UID.
kubectl create deployment kept --image=none
kubectl apply -f - <<'END2'
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: kept, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: kept}]
  placement: {clusterAffinity: {clusterNames: [north, south]}}
END2
uid_in() { member_at "$1" get deployment kept -o 'jsonpath={.metadata.uid}'; }
eventually uid_in h4
eventually uid_in h5
north=$(uid_in h4) south=$(uid_in h5)

write without >"$file"
lines=$((RANDOM % 30 + 1))
echo "== seed $SEED: kill -9 in removals after $lines lines"
killed removals $lines
converges
! kubectl get cluster north || broken "north is still a member"
[ "$(uid_in h4)" = "$north" ] || broken "the workload to keep was replaced or deleted"
[ "$(uid_in h5)" = "$south" ] || broken "the other member's workload was replaced or deleted"
[ "$(kubectl get clusters -o name)" = cluster.cluster.karmada.io/south ] || broken "south is not the only member"
member_down
