# Takes its turn: every third day, with stand-ins.
. "$ROOT/tests/e2e/karmada-lib.sh"
# Each plan is saved, applied, and compared with what the apply really did: files, services, and the order of restarts.
fresh
# Its packages are in the bundle.
with_load_balancer
file=$state/forecast.yaml
# Files of windlass, and services. A program is a link to another version, and no file here.
state_of() {
  on "$1" 'find /etc/etcd /etc/windlass /etc/systemd/system -type f 2>/dev/null | sort | xargs -r sha256sum | sed "s/^\([0-9a-f]*\)  /file \1 /"'
  on "$1" 'for unit in $(systemctl list-units --all --plain --no-legend "etcd*.service" "karmada-*.service" | cut -d" " -f1); do
    echo "unit $unit $(systemctl show -p ActiveState --value $unit) $(systemctl show -p MainPID --value $unit) $(systemctl show -p ExecMainStartTimestampMonotonic --value $unit) $(systemctl show -p NRestarts --value $unit)"; done'
}
states() { local h; mkdir -p "$1"; for h in h1 h2 h3; do state_of $h >"$1/$h"; done; }
# forecast WHAT [OPTION]...: plans, applies the plan, and compares.
forecast() {
  local what=$1
  shift
  echo "== $what"
  rm -rf "$scratch/before" "$scratch/after"
  site plan -o "$scratch/plan" "$@"
  exits 0
  states "$scratch/before"
  windlass apply "$scratch/plan" --playbooks "$ROOT/playbooks" ${WINDLASS_STAND_INS:+-e "@$WINDLASS_STAND_INS"} "$@" --yes
  exits 0
  states "$scratch/after"
  python3 "$ROOT/tests/e2e/forecast.py" "$scratch/plan" "$scratch/before" "$scratch/after" cp-1=h1 cp-2=h2 cp-3=h3 |
    tee "$scratch/compared" || broken "$what: the plan and the apply differ"
}
compared() { grep -qE -- "$1" "$scratch/compared" || broken "too little was compared: $1"; }

skeleton h1 h2 h3 >"$scratch/file"
cp "$scratch/file" "$file"
forecast "install it"
compared ' 21 services'
# At once: a flag (one component, one host after the other), a name in certificates (everything that serves), a setting of etcd (the
# leader last), and a component that comes.
sed -i 's#^  controlPlane:#  components: {karmadaScheduler: {extraArgs: {kube-api-burst: "78"}}, karmadaDescheduler: {}}\n&#' "$file"
sed -i 's#^    hosts: \[cp-1, cp-2, cp-3\]#    certSANs: [karmada.example.com]\n&#' "$file"
sed -i 's#^    managed:#&\n      quotaBackendBytes: 3221225472#' "$file"
forecast "settings"
compared ' 18 services, 15 restarts in order'
# An address of its own, which the certificates name, too; and a component that leaves.
sed -i "s#^    hosts: \[cp-1, cp-2, cp-3\]#    loadBalancer: {virtualAddress: $(vip)}\n&#; s#, karmadaDescheduler: {}##" "$file"
forecast "a load balancer"
compared ' 18 services, 9 restarts in order'
forecast "settings of the load balancer" -e load_balancer_check_seconds=2
compared ' 0 services, 0 restarts in order, 3 reloads'
