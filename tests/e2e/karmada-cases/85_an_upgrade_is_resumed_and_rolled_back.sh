# Takes its turn: every third day, with stand-ins.
. "$ROOT/tests/e2e/karmada-lib.sh"
# On one host, without a load balancer: in minutes, with stand-ins, too. 81 has the rest.
[ -n "${WINDLASS_BUNDLE_BEFORE:-}" ] || cannot_run "WINDLASS_BUNDLE_BEFORE names no bundle"
fresh
one_host
before=-ekarmada_bundle=$WINDLASS_BUNDLE_BEFORE
upgraded='webhook aggregated-apiserver controller-manager scheduler'
all_run() { local c; for c in $upgraded; do [ "$(runs h1 "$c")" = "$1" ] || broken "$c is $(runs h1 "$c"), not $1"; done; }
karmada site "$before"
exits 0
old=$(runs h1 scheduler)
all_run "$old"
karmada karmada
exits 2
says 'Run windlass upgrade to change versions'
recap h1 changed 0
installed() { on h1 'find /etc /opt -xdev -type f -exec sha256sum {} + | sort'; }
installed >"$scratch/before"
karmada upgrade --component scheduler
exits 2
says 'before scheduler, upgrade .*webhook'
says 'error: cannot carry out upgrade: its dry run failed'
karmada upgrade --check
exits 0
says 'upgrading to Karmada .*: aggregated-apiserver, controller-manager, scheduler, webhook'
says '^  h1 +[0-9]+ files'
all_run "$old"
installed | diff "$scratch/before" - || broken "a dry run changed something"

# Another bundle than was shown, and the same again.
cp -al "$WINDLASS_BUNDLE" "$scratch/bundle"
changes() {
  local program=$scratch/bundle/karmada-$new_version/karmada-scheduler
  cp "$program" "$program.new"
  echo >>"$program.new"
  mv "$program.new" "$program"
}
new_version=$(basename "$WINDLASS_BUNDLE"/karmada-*)
new_version=${new_version#karmada-}
karmada_command upgrade --bundle "$scratch/bundle"
at_question 'Continue?' changes y "${sub_command[@]/--yes/--forks=5}"
exits 1
says 'input: karmada_bundle of h1 has changed'
all_run "$old"

# Killed half-way, it is resumed; meanwhile status says so, and nobody else may change anything.
karmada_in_background "$scratch/told" upgrade
for ((i = 0; i < 6000; i++)); do grep -q 'Upgrade each component' "$scratch/told" && break; sleep 0.1; done
karmada upgrade
exits 1
says 'locked by .*windlass upgrade'
karmada status
says '^running: windlass upgrade by .*, for [0-9]+ s'
does_not_say 'was interrupted'
kill -9 "$background"
wait "$background" || true
karmada status
exits 2
says 'unhealthy: the upgrade by .* was interrupted; run windlass upgrade to resume it .*or windlass rollback to go back'
karmada upgrade
exits 0
says 'the upgrade that .* was interrupted: resuming it'
karmada status
exits 0
does_not_say 'was interrupted'
new=$(runs h1 scheduler)
[ "$new" != "$old" ] || broken "it is still $old"
all_run "$new"
[ "$(on h1 'ls /var/backups/etcd/*.db | wc -l')" = 1 ] || broken "there is not one snapshot"

# A second one has nothing to do, and the way back stays.
karmada upgrade
exits 0
does_not_say ' [0-9]+ files?'
[ "$(on h1 'ls /var/backups/etcd/*.db | wc -l')" = 1 ] || broken "it took a second snapshot"
karmada karmada
exits 0
recap h1 changed 0

# A service of the new version that fails and restarts again and again does not stop the rollback that ends this.
on h1 "systemd-run sh -c 'while readlink /opt/windlass/karmada/scheduler/current | grep $new; do systemctl kill -s KILL karmada-scheduler; sleep 3; done'"
# Nor does it install a public key that was exchanged on the controller: tokens of service accounts would be worth nothing.
credentials=$state/credentials/karmada
openssl genpkey -algorithm RSA 2>/dev/null | openssl pkey -pubout >"$credentials/sa.pub"
karmada rollback
exits 0
all_run "$old"
for file in "$credentials/sa.pub" "$state/h1/root/etc/windlass/karmada/apiserver/pki/sa.pub"; do
  openssl pkey -in "$credentials/sa.key" -pubout | diff - "$file" || broken "$file is not of sa.key"
done
karmada rollback
exits 2
says 'this host has no upgrade of karmada that could be rolled back'
karmada karmada "$before"
exits 0
recap h1 changed 0

# An interrupted operation of which nothing is left to do is closed by another one that gives it up.
journal=$(on h1 find /var/lib/windlass -name journal)
on h1 "sed -i 's/\"done\":true/\"done\":false/g' $journal"
karmada status
exits 2
says 'was interrupted'
karmada certificates
exits 1
karmada certificates --abandon
exits 0
karmada status
exits 0
does_not_say 'was interrupted'
