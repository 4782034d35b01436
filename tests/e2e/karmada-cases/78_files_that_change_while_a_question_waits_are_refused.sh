. "$ROOT/tests/e2e/karmada-lib.sh"
fresh
file=$state/files.yaml
skeleton h1 >"$file"
site apply --yes
exits 0
mkdir -p "$state/files"
begin() {
  printf -- '- hosts: karmada_control_plane\n  gather_facts: false\n  tasks: [{ansible.builtin.import_tasks: tasks/shown.yml}]\n' >"$state/files/hook.yml"
  mkdir -p "$state/files/tasks"
  printf -- '- ansible.builtin.command: touch /root/shown\n' >"$state/files/tasks/shown.yml"
  printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note, namespace: default}\ndata: {text: shown}\n' >"$state/files/note.yaml"
  {
    skeleton h1 | sed "s#^  controlPlane:#  addons: [{name: note, to: [control_plane], src: [files/note.yaml]}]\n&#"
    printf '  hooks: [{stage: addons, when: after, playbook: files/hook.yml}]\n'
  } >"$file"
}
at_the_question() { at_question 'Apply?' "$1" y apply -f "$file" ${WINDLASS_STAND_INS:+-e "@$WINDLASS_STAND_INS"} --playbooks "$ROOT/playbooks"; }
untouched() {
  local found
  found=$(kubectl get configmap note -n default --ignore-not-found)
  [ -z "$found" ] || broken "the add-on was applied"
}

begin
# shellcheck disable=SC2317  # at_question runs it
changes() {
  sed -i 's/touch/rm -rf/' "$state/files/tasks/shown.yml"
  echo >>"$state/files/hook.yml"
  sed -i 's/shown/another/' "$state/files/note.yaml"
}
at_the_question changes
exits 1
says 'input: file .*/files/hook\.yml has changed'
says 'input: playbooks and roles has changed'
says 'input: file .*/files/note\.yaml has changed'
untouched

begin
# shellcheck disable=SC2317  # at_question runs it
changes() { sed -i 's/^spec:/&\n  paused: true/' "$file"; }
at_the_question changes
exits 1
says 'is paused'
untouched

# A plan of one document is not carried out with another one that was there when the apply began, although the first one is back when the plan is
# compared with it.
begin
cp "$file" "$scratch/planned"
site plan --out "$scratch/plan"
exits 0
sed -i 's#^spec:#&\n  components: {karmadaScheduler: {extraArgs: {v: "3"}}}#' "$file"
# shellcheck disable=SC2317  # at_question runs it
changes() { cp "$scratch/planned" "$file"; }
at_question 'Apply?' changes y apply "$scratch/plan" ${WINDLASS_STAND_INS:+-e "@$WINDLASS_STAND_INS"} --playbooks "$ROOT/playbooks"
exits 1
says 'the spec of [^ ]+ was changed'
untouched

begin
at_the_question true
exits 0
[ "$(kubectl get configmap note -n default -o 'jsonpath={.data.text}')" = shown ] || broken "the add-on is not there"
on h1 '[ -e /root/shown ]' || broken "the hook did not run"

# Settings with which the API server fails at every start: the corrected ones can be applied.
site apply --yes -e '{"karmada_apiserver_extra_args": {"tls-min-version": "VersionTLS99", "shutdown-send-retry-after": null}}' -e karmada_ready_retries=5
exits 2
site plan
exits 0
says '^controlPlane: '
site apply --yes
exits 0
kubectl get --raw /readyz
