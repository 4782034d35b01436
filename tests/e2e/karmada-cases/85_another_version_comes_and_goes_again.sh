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
says 'Run upgrade.yml to change versions'
recap h1 changed 0
karmada upgrade -e component=scheduler
exits 2
says 'before scheduler, upgrade .*webhook'
karmada upgrade
exits 0
new=$(runs h1 scheduler)
[ "$new" != "$old" ] || broken "it is still $old"
all_run "$new"
[ "$(on h1 'ls /var/backups/etcd/*.db | wc -l')" = 1 ] || broken "there is not one snapshot"
karmada karmada
exits 0
recap h1 changed 0
karmada rollback
exits 0
all_run "$old"
karmada rollback
exits 2
says 'this host has no upgrade of karmada that could be rolled back'
karmada karmada "$before"
exits 0
recap h1 changed 0
