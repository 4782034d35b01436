# Takes its turn: every third day, with stand-ins.
# A program gets a control plane by the API of `windlass serve` alone: it plans, approves, follows and stops. The server is killed in the
# middle of an apply, which continues, and the stream with it.
. "$ROOT/tests/e2e/karmada-lib.sh"
fresh
. "$ROOT/tests/e2e/serve-lib.sh"
skeleton h1 h2 h3 | sed "s/name: production/name: prod/" >"$deployments/prod.yaml"

serve_up
[ "$(api GET /deployments/prod | field 'd["hosts"], d["problem"]')" = "(['cp-1', 'cp-2', 'cp-3'], None)" ] || broken "the deployment is not listed"
trees >"$scratch/before"
planned
trees >"$scratch/after"
same_trees "$scratch/before" "$scratch/after"
[ "$(api GET "/plans/$plan" | field 'd["approvable"]')" = True ] || broken "the plan cannot be approved"
refused OtherDigest POST /deployments/prod/runs "{\"command\": \"apply\", \"plan\": \"$plan\", \"digest\": \"0$digest\"}"

run=$(approved)
refused AlreadyRunning POST /deployments/prod/runs "{\"command\": \"apply\", \"plan\": \"$plan\", \"digest\": \"$digest\"}"
case $(api GET "/runs/$run" | field 'd["user"]') in "token e2e by "*) ;; *) broken "the run does not say who started it" ;; esac
follow "$run" >"$scratch/first.events" &
follower=$!
is_at_work() { grep -q '"stage":"etcd"' "$scratch/first.events"; }
eventually is_at_work
kill -9 "$server"
wait "$server" || true
wait "$follower" || true
serve_up
last=$(sed -n 's/^id: //p' "$scratch/first.events" | tail -1)
follow "$run" "$last" >"$scratch/second.events"
[ "$(outcome "$run")" = succeeded ] || { api GET "/runs/$run/log" | tail -40; broken "the apply did not succeed"; }
# Nothing is missing between the two streams, and nothing came twice.
cat "$scratch/first.events" "$scratch/second.events" | sed -n 's/^id: //p' >"$scratch/ids"
seq "$(api GET "/runs/$run" | field 'd["last_sequence"]')" | diff - "$scratch/ids" || broken "the streams do not have each event once"
refused PlanIsOld POST /deployments/prod/runs "{\"command\": \"apply\", \"plan\": \"$plan\", \"digest\": \"$digest\"}"

look=$(start '{"command": "status"}')
follow "$look" >/dev/null
[ "$(api GET /deployments/prod/status | field 'd["run"], d["status"]["healthy"]')" = "('$look', True)" ] || broken "the status is not healthy"

# A run that is stopped is recorded as interrupted, and the next plan completes it.
sed -i 's#^  controlPlane:#  components: {karmadaScheduler: {extraArgs: {kube-api-burst: "78"}}}\n&#' "$deployments/prod.yaml"
planned
run=$(approved)
stopped=$run
api POST "/runs/$run/stop" '{}' >/dev/null
follow "$run" >/dev/null
[ "$(outcome "$run")" = interrupted ] || broken "the run was not stopped: $(outcome "$run")"
planned
run=$(approved)
follow "$run" >/dev/null
[ "$(outcome "$run")" = succeeded ] || broken "the second apply did not succeed"
for h in h1 h2 h3; do on $h grep -q kube-api-burst=78 /etc/systemd/system/karmada-scheduler.service || broken "the flag is missing on $h"; done

# Destroyed by its name, for the document that was seen, and with a right of its own.
document=$(sha256sum "$deployments/prod.yaml" | cut -d' ' -f1)
refused NameNotConfirmed POST /deployments/prod/runs "{\"command\": \"destroy\", \"confirm\": \"pro\", \"document\": \"$document\"}"
refused OtherDocument POST /deployments/prod/runs "{\"command\": \"destroy\", \"confirm\": \"prod\", \"document\": \"0$document\"}"
for h in h1 h2 h3; do on $h systemctl is-active etcd || broken "$h was changed by a refused request"; done
run=$(start "{\"command\": \"destroy\", \"confirm\": \"prod\", \"document\": \"$document\"}")
follow "$run" >/dev/null
[ "$(outcome "$run")" = succeeded ] || { api GET "/runs/$run/log" | tail -40; broken "it was not destroyed"; }
for h in h1 h2 h3; do on $h '! [ -e /etc/etcd ] && ! [ -e /var/lib/etcd ] && ! systemctl is-active etcd karmada-apiserver' || broken "something is left on $h"; done
refused PlanIsOld POST /deployments/prod/runs "{\"command\": \"apply\", \"plan\": \"$plan\", \"digest\": \"$digest\"}"

"$WINDLASS" serve audit >"$scratch/audit"
grep -q '127.0.0.1  token e2e  OtherDigest  start a run: prod, apply of the plan ' "$scratch/audit" || broken "a refusal is not in the audit log"
grep -q "127.0.0.1  token e2e  202  stop a run when its running tasks have ended: $stopped$" "$scratch/audit" || broken "the stop is not in the audit log"
grep -q 'the command line  .*  done  create a token: e2e, see=prod plan=prod approve=prod stop=prod destroy=prod for 90 days$' "$scratch/audit" || broken "the token is not in the audit log"
"$WINDLASS" serve token revoke e2e
refused NotLoggedIn GET /runs
kill "$server"
wait "$server" || broken "the server does not end well"
server=
