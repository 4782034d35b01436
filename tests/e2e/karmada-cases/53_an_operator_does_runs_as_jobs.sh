# Takes its turn.
# An operator gives a Run to a Job, whose pod is killed while it changes hosts: another Job finishes the control plane.
. "$ROOT/tests/e2e/karmada-lib.sh"
. "$ROOT/tests/e2e/management-cluster.sh"
fresh
management_up
management_jobs
at_management create secret generic ssh --from-file="id=$state/id_ed25519"
: >"$state/operator.log"
deployment | at_management apply --validate=false -f -
job_template >"$scratch/job.yml"
operator_up --look-every 10 --job-template "$scratch/job.yml"
eventually has_condition prod Blocked 'True AwaitingApproval'
run_of install "$(digest_of prod)"
is_applying() { grep -q 'applying controlPlane' "$state/node.log"; }
eventually is_applying
! pgrep -f 'windlass worker -f kube:default/prod .*--run install' | xargs -r -n 1 ps -o ppid= -p | matches -w "$operator" ||
  broken "the operator does the run itself"
kill -9 "$(pod_process)"
# The operator is killed as well: the next one knows the Run and its Jobs.
kill -9 "$operator"
wait "$operator" || true
operator_up --look-every 10 --job-template "$scratch/job.yml"
eventually run_is install 'True Succeeded'
[ "$(at_management get run install -o 'jsonpath={.status.attempts}')" = 2 ] || broken "it was not two processes that did the run"
at_management get jobs,pods -l app.kubernetes.io/managed-by=windlass
eventually has_condition prod Ready 'True Ready'
shows prod UpToDate 'True UpToDate'
for h in h1 h2 h3; do on $h systemctl is-active --quiet etcd karmada-scheduler || broken "not all is active on $h"; done
kill "$operator"
wait "$operator" || broken "the operator does not end well"
