# Takes its turn.
# An operator gives a Run to a Job, whose pod is killed while it changes hosts: another Job finishes the control plane. Then Jobs take backups of
# etcd on a schedule, encrypted, into a bucket, and restore them.
. "$ROOT/tests/e2e/karmada-lib.sh"
. "$ROOT/tests/e2e/management-cluster.sh"
. "$ROOT/tests/e2e/bucket.sh"
fresh
management_up
management_jobs
at_management create secret generic ssh --from-file="id=$state/id_ed25519"
: >"$state/operator.log"
deployment | at_management apply --validate=false -f -
# The S3 service is on this machine.
job_template 127.0.0.1 >"$scratch/job.yml"
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
shows prod BackupRecent 'Unknown NoBackups'

# backup NAME [LINE]...: an EtcdBackup of prod, with further lines of its spec.
backup() {
  local name=$1
  shift
  printf 'apiVersion: windlass.dev/v1alpha1\nkind: EtcdBackup\nmetadata: {name: %s, namespace: default}\nspec:\n  deployment: prod\n  keep: 2\n' "$name"
  printf '  %s\n' "$@"
  printf '  storage:\n    s3:\n      endpoint: "%s"\n      bucket: backups\n      prefix: karmada/prod\n' "$s3_url"
  for field in caCert accessKey secretKey; do printf '      %s: {secret: {name: s3, key: %s}}\n' $field $field; done
}
backup_status() { at_management get etcdbackup "$1" -o "jsonpath={.status.$2}"; }
s3_up "$state/management/server.crt" "$state/management/server.key"
at_management create secret generic s3 --from-file="caCert=$state/management/ca.crt" --from-literal="accessKey=$AWS_ACCESS_KEY_ID" \
  --from-literal="secretKey=$AWS_SECRET_ACCESS_KEY"
age-keygen -o "$scratch/owner.key" 2>/dev/null
owner=$(age-keygen -y "$scratch/owner.key")
backup frequent 'schedule: "* * * * *"' 'timeZone: Asia/Shanghai' 'rehearse: true' "recipients: [$owner]" | at_management apply --validate=false -f -
has_backup() { [ -n "$(backup_status frequent lastSuccess)" ]; }
eventually has_backup
address=$(backup_status frequent lastSuccess)
run=$(backup_status frequent lastRun)
[ "$(at_management get run "$run" -o 'jsonpath={.spec.operation} {.metadata.ownerReferences[0].kind}')" = 'Backup EtcdBackup' ] || broken "it was not a Run of the backup"
eventually has_condition prod BackupRecent 'True Recent'
at_management get etcdbackup -o wide
# It changes nothing: prod stays as it was, also in the next minute.
another() { [ "$(backup_status frequent lastSuccess)" != "$address" ] && has_backup; }
eventually another
backup frequent 'schedule: "* * * * *"' 'suspend: true' "recipients: [$owner]" | at_management apply --validate=false -f -
shows prod UpToDate 'True UpToDate'
shows prod Drifted 'False NoDrift'
is_over() { [ "$(at_management get runs -o 'jsonpath={.items[*].status.completionTime}' | wc -w)" = "$(at_management get runs -o name | wc -l)" ]; }
eventually is_over
AWS_ENDPOINT_URL_S3=$s3_url AWS_CA_BUNDLE=$state/management/ca.crt windlass etcd backups s3://backups/karmada/prod --identity "$scratch/owner.key"
exits 0
says ' yes, decrypted$'
s3_requests | matches 'PUT /backups/karmada/prod/.*/manifest.json' || broken "no manifest was uploaded"
in_no_record "$AWS_SECRET_ACCESS_KEY"
! grep -lF "$AWS_SECRET_ACCESS_KEY" "$state/operator.log" "$state/node.log" || broken "the secret key is in a log"

# A backup to another host, which fails first, as others can write there: it is tried again a minute later.
on h4 mkdir -p -m 777 /srv/etcd-backups
on h4 chmod 777 /srv/etcd-backups
backup once "recipients: [$owner]" | sed '/^  storage:/,$d' >"$scratch/once.yml"
printf '  storage:\n    ssh: {address: %s, user: root, directory: /srv/etcd-backups, fingerprint: "%s", privateKey: {secret: {name: ssh, key: id}}}\n' \
  "$(address_of h4)" "$(fingerprint_of h4)" >>"$scratch/once.yml"
at_management apply --validate=false -f "$scratch/once.yml"
first=once-$(at_management get etcdbackup once -o 'jsonpath={.metadata.uid}' | cut -c 1-8)
eventually run_is "$first" 'False BackupFailed'
at_management get run "$first" -o 'jsonpath={.status.conditions[0].message}' | matches 'others can write to it' || broken "the reason is not there"
on h4 chmod 700 /srv/etcd-backups
eventually run_is "$first-retry-1" 'True Succeeded'
[ "$(backup_status once lastRun) $(backup_status once retries)" = "$first-retry-1 1" ] || broken "the status names another run"
backup_status once lastSuccess | matches "^ssh://root@$(address_of h4)/srv/etcd-backups/" || broken "the address is wrong"
on h4 'cat /srv/etcd-backups/*/manifest.json' | matches '"encryption"' || broken "the backup is not encrypted, or is not there"

# A Run restores the newest backup, which is encrypted: the controllers wait, nothing starts them, and another Run releases them.
stored() {
  on h1 "ETCDCTL_API=3 /opt/windlass/etcd/etcd/current/etcdctl --endpoints https://127.0.0.1:2379 --cacert /etc/etcd/pki/ca.crt \
    --cert /etc/etcd/pki/client.crt --key /etc/etcd/pki/client.key $*"
}
# operation NAME OPERATION [LINE]...: a Run for prod, with further lines of its spec.
operation() {
  printf 'apiVersion: windlass.dev/v1alpha1\nkind: Run\nmetadata: {name: %s, namespace: default}\nspec: {deployment: prod, operation: %s, confirm: prod%s}\n' \
    "$1" "$2" "${3:-}" | at_management apply --validate=false -f -
}
are_held() {
  local h
  for h in h1 h2 h3; do ! on $h systemctl is-active --quiet karmada-scheduler karmada-controller-manager || broken "controllers run on $h"; done
}
# etcd has the version of the bundle, and no space to give back.
operation newer UpgradeEtcd
eventually run_is newer 'True Succeeded'
operation space DefragmentEtcd
eventually run_is space 'True Succeeded'
stored put later lost-by-the-restore
operation early Restore ', backup: frequent'
eventually run_is early 'False RestoreRefused'
at_management get run early -o 'jsonpath={.status.conditions[0].message}' | matches 'it is encrypted' || broken "the reason is not there"
backup frequent 'schedule: "* * * * *"' 'suspend: true' "recipients: [$owner]" 'identity: {secret: {name: key, key: age}}' |
  at_management apply --validate=false -f -
at_management create secret generic key --from-file="age=$scratch/owner.key"
operation back Restore ', backup: frequent'
eventually run_is back 'True Succeeded'
found=$(stored get later)
[ -z "$found" ] || broken "what was written after the backup is still there"
for h in h1 h2 h3; do on $h systemctl is-active --quiet etcd karmada-apiserver || broken "API servers do not run on $h"; done
are_held
has_looked_since() { [ "$(at_management get kd prod -o 'jsonpath={.status.look.time}')" \> "$(at_management get run back -o 'jsonpath={.status.completionTime}')" ]; }
eventually has_looked_since
at_management get kd prod -o 'jsonpath={.status.conditions}'
run_of during "$(digest_of prod)"
has_ended() { at_management get run "$1" -o 'jsonpath={.status.completionTime}' | matches Z; }
eventually has_ended during
are_held
operation undo UndoRestore
eventually run_is undo 'True Succeeded'
stored get later | matches lost-by-the-restore || broken "the data from before the restore is not back"
for h in h1 h2 h3; do on $h systemctl is-active --quiet karmada-scheduler || broken "no controller runs on $h after the undo"; done
# The one that it names.
address=$(backup_status frequent lastSuccess)
operation again Restore ", backup: frequent, snapshot: ${address##*/}"
eventually run_is again 'True Succeeded'
at_management get run again -o 'jsonpath={.status.agreed.snapshot}' | matches -x "${address##*/}" || broken "another backup was restored"
operation release ReleaseRestore
eventually run_is release 'True Succeeded'
for h in h1 h2 h3; do on $h systemctl is-active --quiet karmada-scheduler karmada-controller-manager || broken "controllers do not run on $h"; done
in_no_record "$(grep SECRET "$scratch/owner.key")"
! grep -lF "$(grep SECRET "$scratch/owner.key")" "$state/operator.log" "$state/node.log" || broken "the secret key is in a log"

# What cannot be written is a failure that is seen. A deployment that does not exist is none to wait for.
at_management create secret generic s3 --dry-run=client -o json --from-file="caCert=$state/management/ca.crt" \
  --from-literal="accessKey=$AWS_ACCESS_KEY_ID" --from-literal=secretKey=wrong | at_management apply -f -
has_failed() { backup_status "$1" message | matches "^$2: "; }
backup now | at_management apply --validate=false -f -
eventually has_failed now BackupFailed
eventually has_condition prod BackupRecent 'False BackupFailed'
backup_status now message | matches 'BackupFailed: cannot list s3://backups/karmada/prod/: the server responded 403 SignatureDoesNotMatch' ||
  broken "the reason is not there: $(backup_status now message)"
backup nobody | sed 's/deployment: prod/deployment: nobody/' | at_management apply --validate=false -f -
is_unknown() { backup_status nobody problem | matches 'there is no KarmadaDeployment nobody'; }
eventually is_unknown
# What others write leads to no address of this machine that is not allowed, nor to a file.
backup inside | sed 's#endpoint: .*#endpoint: "https://169.254.169.254"#' | at_management apply --validate=false -f -
eventually has_failed inside BackupFailed
backup_status inside message | matches 'must not connect to 169.254.169.254' || broken "the reason is not there: $(backup_status inside message)"
{ backup file | sed '/storage:/,$d' && echo '  storage: {path: /srv/backups}'; } | at_management apply --validate=false -f -
eventually has_failed file BackupRefused
kill "$operator"
wait "$operator" || broken "the operator does not end well"
