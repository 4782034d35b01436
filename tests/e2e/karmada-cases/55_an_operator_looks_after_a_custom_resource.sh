# Takes its turn.
# From bare hosts to a control plane by objects of an API alone: the operator looks, waits for approval, applies, and says what it sees.
. "$ROOT/tests/e2e/karmada-lib.sh"
. "$ROOT/tests/e2e/management-cluster.sh"
fresh
management_up
at_management create secret generic ssh --from-file="id=$state/id_ed25519"
: >"$state/operator.log"
trees >"$scratch/before"
deployment | at_management apply --validate=false -f -
operator_up --look-every 10
eventually has_condition prod Blocked 'True AwaitingApproval'
shows prod UpToDate 'False ChangesPending'
has_condition prod Ready 'False EtcdHasNoMajority'
trees >"$scratch/looked"
same_trees "$scratch/before" "$scratch/looked"

# Another plan than the one that there is changes nothing.
run_of other 0000000000000000000000000000000000000000000000000000000000000000
eventually run_is other 'False PlanChanged'
trees >"$scratch/looked"
same_trees "$scratch/before" "$scratch/looked"

# A spec that is changed during an apply is not applied: nobody has agreed to it.
run_of early "$(digest_of prod)"
is_applying_early() { grep -q 'applying etcd' "$state/operator.log"; }
eventually is_applying_early
spec='  components: {karmadaScheduler: {extraArgs: {v: "3"}}}
'
deployment "$spec" | at_management apply --validate=false -f -
eventually run_is early 'False PlanChanged'
at_management get run early -o 'jsonpath={.status.conditions[0].message}' | matches 'the spec of prod was changed' || broken "the reason is not there"
on h1 '! test -e /etc/systemd/system/karmada-scheduler.service' || broken "a later stage was begun"
eventually has_condition prod Blocked 'True AwaitingApproval'

run_of install "$(digest_of prod)"
eventually run_is install 'Unknown Running'
eventually has_condition prod Progressing 'True Applying'
# The operator is killed in the middle: the run continues, and the next operator begins no second one.
kill -9 "$operator"
wait "$operator" || true
operator_up --look-every 10
for _ in 1 2 3; do eventually run_is install 'True Succeeded'; done
[ "$(at_management get run install -o 'jsonpath={.status.attempts}')" = 1 ] || broken "the run was begun twice"
eventually has_condition prod Ready 'True Ready'
shows prod UpToDate 'True UpToDate'
at_management get kd prod -o wide
at_management get runs
[ "$(at_management get kd prod -o 'jsonpath={.status.look.summary.hosts} {.status.look.summary.etcd}')" = '3/3 3/3' ] || broken "the summary is wrong"
# The credentials are with the object, and nowhere on this machine.
[ "$(at_management get secret prod-credentials -o 'jsonpath={.type}')" = windlass.dev/credentials ] || broken "there is no Secret with the credentials"
for place in credentials "$state/credentials"; do [ ! -e "$place" ] || broken "credentials are on this machine: $place"; done
# The same from the command line.
KUBECONFIG=$management WINDLASS_RESOURCE_BUNDLES=karmada=$WINDLASS_BUNDLE WINDLASS_RESOURCE_NETWORKS=$(hosts_network) \
  windlass plan -f kube:default/prod ${WINDLASS_STAND_INS:+-e "@$WINDLASS_STAND_INS"} --playbooks "$ROOT/playbooks"
exits 0
says '^Nothing to do\.$'

# A component that is stopped is seen, and mended only by approval.
on h2 systemctl stop karmada-scheduler
eventually has_condition prod Degraded 'True Unhealthy'
eventually has_condition prod Drifted 'True HostsDiffer'
on h2 '! systemctl is-active --quiet karmada-scheduler' || broken "the operator has started it without approval"
# Then automatically.
deployment "$spec"'  apply: Automatic
' | at_management apply --validate=false -f -
eventually has_condition prod Ready 'True Ready'
on h2 systemctl is-active --quiet karmada-scheduler

# Without its credentials the deployment is left alone.
at_management get secret prod-credentials -o json >"$scratch/secret.json"
at_management patch secret prod-credentials --type=merge -p '{"metadata": {"finalizers": null}}'
at_management delete secret prod-credentials
digests() { for h in h1 h2 h3; do on $h "find /etc -path '*/pki/*' -type f | sort | xargs sha256sum"; done; }
digests >"$scratch/keys"
applying=$(grep -c 'applying etcd' "$state/operator.log")
deployment "$spec"'  apply: Automatic
' | sed 's/managed: {/&quotaBackendBytes: 3221225472, /' | at_management apply --validate=false -f -
eventually has_condition prod Blocked 'True PlanRefused'
digests >"$scratch/keys-now"
diff "$scratch/keys" "$scratch/keys-now" || broken "new keys came to the hosts"
! at_management get secret prod-credentials || broken "a new authority was created"
python3 - "$scratch/secret.json" <<'END' | at_management create -f -
import json, sys
secret = json.load(open(sys.argv[1]))
for key in ("resourceVersion", "uid", "creationTimestamp", "managedFields"): secret["metadata"].pop(key, None)
json.dump(secret, sys.stdout)
END
# Now it can be applied. Its worker is killed while it changes hosts, and another one resumes the same run.
# Of this operator: other tests may run workers of a deployment with the same name.
worker() { pgrep -P "$operator" -f 'windlass worker -f kube:default/prod .*--run' | head -1; }
is_applying() { [ "$(grep -c 'applying etcd' "$state/operator.log")" -gt "$applying" ]; }
eventually is_applying
kill -9 "$(worker)"
eventually has_condition prod Ready 'True Ready'
newest=$(at_management get kd prod -o 'jsonpath={.status.lastRun}')
[ "$(at_management get run "$newest" -o 'jsonpath={.status.attempts}')" = 2 ] || broken "no second process has done the run"
for h in h1 h2 h3; do on $h grep -rq 3221225472 /etc/etcd || broken "$h has the old quota"; done

# A host goes away: it is named.
hosts kill h3
eventually has_condition prod HostsReachable 'False HostsUnreachable'
at_management get kd prod -o 'jsonpath={.status.conditions[?(@.type=="HostsReachable")].message}' | matches 'h3$' || broken "the host is not named"
hosts start h3
eventually has_condition prod Ready 'True Ready'

# It goes only by its name.
deployment "$spec"'  deletionPolicy: Destroy
' | at_management apply --validate=false -f -
destroys() { at_management get kd prod -o 'jsonpath={.metadata.finalizers}' | matches windlass.dev/destroy; }
eventually destroys
at_management delete kd prod --wait=false
eventually has_condition prod Blocked 'True AwaitingDestroy'
printf 'apiVersion: windlass.dev/v1alpha1\nkind: Run\nmetadata: {name: away}\nspec: {deployment: prod, operation: Destroy, confirm: prod}\n' | at_management apply -f -
eventually run_is away 'True Succeeded'
for h in h1 h2 h3; do
  found=$(on $h 'ls -d /etc/windlass /opt/windlass /var/lib/etcd 2>/dev/null; ls /etc/systemd/system | grep -E "^(karmada|etcd)" || true')
  [ -z "$found" ] || broken "something is left on $h"
done
gone() { ! at_management get kd prod; }
eventually gone
kill "$operator"
wait "$operator" || broken "the operator does not end well"
