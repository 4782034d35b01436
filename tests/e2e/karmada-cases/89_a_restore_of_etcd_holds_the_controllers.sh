# Takes long: tests/e2e/karmada 89_a_restore_of_etcd_holds_the_controllers
# shellcheck shell=bash
. "$ROOT/tests/e2e/karmada-lib.sh"
# etcd is restored under a control plane: API servers show the old objects, and no controller runs before the release.
fresh
karmada site
exits 0
karmada_command site
options=("${karmada_options[@]}" --playbooks "$ROOT/playbooks")
controllers='kube-controller-manager controller-manager scheduler'
servers='apiserver aggregated-apiserver webhook'
# are STATE ENABLED COMPONENT...: on all hosts.
are() {
  local state=$1 enabled=$2 h c
  shift 2
  for h in h1 h2 h3; do
    for c in "$@"; do
      [ "$(on $h "systemctl is-active karmada-$c || true")" = "$state" ] || broken "karmada-$c on $h is not $state"
      [ "$(on $h "systemctl is-enabled karmada-$c || true")" = "$enabled" ] || broken "karmada-$c on $h is not $enabled"
    done
  done
}
objects() { local h; for h in h1 h2 h3; do kubectl_at $h get configmaps -o 'jsonpath={.items[*].metadata.name}'; echo; done | sort -u; }

kubectl create configmap kept --from-literal=a=b
kubectl create configmap deleted --from-literal=a=b
windlass etcd backup "$scratch/backups" "${options[@]}"
exits 0
backup=$(find "$scratch/backups" -mindepth 1 -maxdepth 1 -name '*-r*')
kubectl delete configmap deleted
kubectl create configmap later --from-literal=a=b
later=$(objects)

# A host of the control plane that does not answer: its API server would continue.
hosts kill h3
sleep 2
windlass etcd restore "$backup" --name karmada "${options[@]}"
exits 4
are_up() { local h; for h in h1 h2; do [ "$(on $h 'systemctl is-active karmada-apiserver')" = active ] || broken "the API server of $h was stopped"; done; }
are_up
hosts start h3
eventually kubectl_at h3 get --raw /readyz

windlass etcd restore "$backup" --check "${options[@]}"
exits 0
says 'Holds controller-manager, kube-controller-manager, scheduler of karmada on h1, h2, h3'
# shellcheck disable=SC2086  # they are words
are active enabled $servers $controllers
windlass etcd restore "$backup" --name karmada "${options[@]}"
exits 0
# shellcheck disable=SC2086  # they are words
are active enabled $servers
# shellcheck disable=SC2086  # they are words
are inactive disabled $controllers
[[ $(objects) = *deleted*kept* && $(objects) != *later* ]] || broken "the API servers show: $(objects)"
kubectl create configmap new --from-literal=a=b
for h in h1 h2 h3; do on $h 'grep -qE "^restore 2[0-9]{7}T[0-9]{6}Z-[0-9a-f]{8}$" /etc/windlass/karmada/held' || broken "$h does not say which restore holds it"; done
# Nothing starts them by mistake, and neither does a host that restarts.
karmada site
exits 2
says 'the controllers of karmada are held since etcd was restored'
karmada certificates
exits 2
hosts kill h2
hosts start h2
eventually kubectl_at h2 get --raw /readyz
# shellcheck disable=SC2086  # they are words
are inactive disabled $controllers

# The way back, and once more forward.
windlass etcd restore --undo --name karmada "${options[@]}"
exits 0
# shellcheck disable=SC2086  # they are words
are active enabled $servers $controllers
[ "$(objects)" = "$later" ] || broken "the API servers show $(objects), not $later"
windlass etcd restore "$backup" --name karmada "${options[@]}"
exits 0
windlass etcd restore --release --name karmada "${options[@]}"
exits 0
# shellcheck disable=SC2086  # they are words
are active enabled $servers $controllers
[[ $(objects) = *deleted*kept* && $(objects) != *later* ]] || broken "the API servers show: $(objects)"
karmada site
exits 0
karmada status
exits 0
