# Needs Karmada's own programs.
. "$ROOT/tests/e2e/karmada-lib.sh"
# The stages that have nothing to do are not run: a member comes and goes, and etcd and the control plane are left alone.
arguments() { printf '%s\n' -i "$1" -e "karmada_bundle=$WINDLASS_BUNDLE" -e "etcd_bundle=$ROOT/target/etcd/3.5" ${WINDLASS_STAND_INS:+-e "@$WINDLASS_STAND_INS"} --playbooks "$ROOT/playbooks"; }
plan_of() { local a file=$1; shift; mapfile -t a < <(arguments "$file"); windlass plan "${a[@]}" "$@"; }
apply_of() { local a file=$1; shift; mapfile -t a < <(arguments "$file"); windlass apply "${a[@]}" "$@"; }
# When services were started, and what is in the directories of configuration and programs.
settled() {
  local h
  for h in h1 h2 h3; do
    on $h 'systemctl show -p Id -p ExecMainStartTimestampMonotonic etcd "karmada-*.service"'
    on $h 'find /etc/etcd /etc/windlass /opt/windlass -type f -exec stat -c "%n %Y %s" {} + | sort'
  done
}

# Whatever the cases before left.
apply_of "$karmada_inventory" --yes
exits 0
plan_of "$karmada_inventory"
exits 0
says '^Nothing to do\.$'

member_up
with=$scratch/with.ini without=$scratch/without.ini
for file in "$with" "$without"; do cp "$karmada_inventory" "$file"; done
# Credentials lie beside the inventory.
ln -s "$state/credentials" "$scratch/credentials"
printf '\n[members]\nalpha ansible_connection=local member_kubeconfig=%s\n' "$member_kubeconfig" >>"$with"
printf '\n[del_member]\nalpha ansible_connection=local member_kubeconfig=%s\n' "$member_kubeconfig" >>"$without"

settled >"$scratch/before"
plan_of "$with" -v
exits 0
says '^members: 1 host$'
says '^    object .*Cluster alpha'
says '^nothing to do: etcd, controlPlane, removals, addons$'
apply_of "$with" --yes
exits 0
says 'applying members: '
does_not_say 'applying (etcd|controlPlane|removals|addons): '
kubectl get cluster alpha
settled >"$scratch/after"
diff "$scratch/before" "$scratch/after" || broken "something else was touched"
apply_of "$with" --yes
exits 0
says '^Nothing to do\.$'

# It leaves by its lines; more than --max-removals do not leave unasked.
apply_of "$without" --yes --max-removals 0
exits 1
says '1 member would be removed \(alpha\), and --max-removals allows 0'
apply_of "$without" --yes
exits 0
says '^removals: leaving: alpha$'
does_not_say 'applying (etcd|controlPlane|members|addons): '
! kubectl get cluster alpha || broken "alpha is still there"
settled >"$scratch/after"
diff "$scratch/before" "$scratch/after" || broken "something else was touched"
member_down
