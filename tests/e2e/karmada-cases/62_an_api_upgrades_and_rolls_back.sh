# Takes its turn: every third day, with stand-ins.
# A program upgrades a control plane by the API of `windlass serve` alone: it sees the plan, approves it by its digest and follows the run;
# what was approved is not done if a host has changed since. A backup comes before it, and a rollback after it.
. "$ROOT/tests/e2e/karmada-lib.sh"
[ -n "${WINDLASS_BUNDLE_BEFORE:-}" ] || cannot_run "WINDLASS_BUNDLE_BEFORE names no bundle"
fresh
. "$ROOT/tests/e2e/serve-lib.sh"
document=$deployments/prod.yaml
skeleton h1 | sed -e "s/name: production/name: prod/" -e "s#$WINDLASS_BUNDLE\$#$WINDLASS_BUNDLE_BEFORE#" >"$document"
grep -q "bundle: $WINDLASS_BUNDLE_BEFORE\$" "$document" || broken "the document does not name the older bundle"
upgraded='webhook aggregated-apiserver controller-manager scheduler'
all_run() { local c; for c in $upgraded; do [ "$(runs h1 "$c")" = "$1" ] || broken "$c is $(runs h1 "$c"), not $1"; done; }
body() { echo "{\"command\": \"$1\", \"plan\": \"$plan\", \"digest\": \"$digest\"}"; }

rm -rf "$state/served-backups"
serve_up --backups "$state/served-backups" --keep-backups 2
planned
done_by "$(approved)"
old=$(runs h1 scheduler)
all_run "$old"

sed -i "s#bundle: .*#bundle: $WINDLASS_BUNDLE#" "$document"
planned
refused PlanRefused POST /deployments/prod/runs "$(body apply)"

# A backup, in the directory of the server.
backup=$(start '{"command": "etcd_backup"}')
done_by "$backup"
is_verified() { [ "$(api GET /deployments/prod/backups | field '[(b["verified"], b["problem"], b["revision"] > 0) for b in d["items"]]')" = "[(True, None, True)]" ]; }
eventually is_verified

# What the plan says is what the command line prints first; making it changes nothing.
settled_trees >"$scratch/before"
planned upgrade
settled_trees >"$scratch/after"
same_trees "$scratch/before" "$scratch/after"
api GET "/plans/$plan" >"$scratch/plan.json"
[ "$(field 'd["operation"], d["approvable"], d["stages"][0]["state"]' <"$scratch/plan.json")" = "('upgrade', True, 'differs')" ] || broken "$(cat "$scratch/plan.json")"
field 'd["text"]' <"$scratch/plan.json" >"$scratch/text"
grep -q 'upgrading to Karmada .*: aggregated-apiserver, controller-manager, scheduler, webhook' "$scratch/text" || broken "$(cat "$scratch/plan.json")"
refused OtherDigest POST /deployments/prod/runs "$(body upgrade | sed 's/"digest": "/&0/')"
refused OtherOperation POST /deployments/prod/runs "$(body rollback)"

# A host that has changed since: nothing is done.
file=/etc/systemd/system/karmada-scheduler.service
on h1 "cp -p $file /root/kept; echo >>$file"
run=$(approved upgrade)
follow "$run" >/dev/null
[ "$(outcome "$run")" != succeeded ] || broken "it did what was approved on another host"
api GET "/runs/$run/log" >"$scratch/log"
grep -q "file $file has changed" "$scratch/log" || { cat "$scratch/log"; broken "it does not say what has changed"; }
all_run "$old"
on h1 "cp -p /root/kept $file; rm /root/kept"
refused PlanIsOld POST /deployments/prod/runs "$(body upgrade)"

planned upgrade
done_by "$(approved upgrade)"
new=$(runs h1 scheduler)
[ "$new" != "$old" ] || broken "it is still $old"
all_run "$new"
planned upgrade
refused NothingToDo POST /deployments/prod/runs "$(body upgrade)"
planned certificates
refused NothingToDo POST /deployments/prod/runs "$(body certificates)"

planned rollback
done_by "$(approved rollback)"
all_run "$old"
planned rollback
refused PlanRefused POST /deployments/prod/runs "$(body rollback)"
"$WINDLASS" serve audit >"$scratch/audit"
grep -q "token e2e  201  start a run: prod, upgrade of the plan " "$scratch/audit" || broken "the upgrade is not in the audit log"
"$WINDLASS" serve token revoke e2e
kill "$server"
wait "$server" || broken "the server does not end well"
server=
