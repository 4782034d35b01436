# What cases about `windlass serve` have in common: a server of the directory $deployments, whose process is $server, and requests to it with
# the token e2e, which has rights on the deployment prod.
# shellcheck shell=bash
deployments=$state/served
rm -rf "$deployments"
mkdir -p "$deployments"
cp "$state/id_ed25519" "$state/known_hosts" "$deployments/" && chmod 600 "$deployments/id_ed25519"

server=
# serve_up [OPTION...]: starts the server; on the port it had before, if it was there.
serve_up() {
  "$WINDLASS" serve -d "$deployments" --listen "127.0.0.1:${port:-0}" --playbooks "$ROOT/playbooks" ${WINDLASS_STAND_INS:+-e "@$WINDLASS_STAND_INS"} "$@" \
    2>"$scratch/serve.log" &
  server=$!
  port=
  until [ -n "$port" ]; do
    sleep 0.2
    port=$(sed -nE 's#^listening on http://127.0.0.1:([0-9]+), .*#\1#p' "$scratch/serve.log")
    kill -0 "$server" || { cat "$scratch/serve.log"; broken "the server does not start"; }
  done
}
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true' EXIT
"$WINDLASS" serve token revoke e2e 2>/dev/null || true
token=$("$WINDLASS" serve token create e2e --right see=prod --right plan=prod --right approve=prod --right stop=prod --right destroy=prod)
# api METHOD PATH [BODY]: the answer; it fails when the answer is a problem.
api() {
  curl -sS --fail-with-body -X "$1" -H "Authorization: Bearer $token" -H 'Content-Type: application/json' ${3:+--data "$3"} "http://127.0.0.1:$port/api/v1$2"
}
# refused CODE METHOD PATH [BODY]: the answer is a problem with this code.
refused() {
  local code=$1 answer
  shift
  ! answer=$(api "$@" 2>/dev/null) || broken "$* was not refused"
  [ "$(field 'd["code"]' <<<"$answer")" = "$code" ] || broken "$* was refused with $answer"
}
# field EXPRESSION: of the JSON of standard input, here d.
field() { python3 -c 'import json, sys; d = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"; }
# follow RUN [AFTER]: its events until it ends, or the connection does.
follow() { curl -sSN -H "Authorization: Bearer $token" -H 'Accept: text/event-stream' "http://127.0.0.1:$port/api/v1/runs/$1/events?after=${2:-0}"; }
outcome() { api GET "/runs/$1" | field 'd["outcome"]'; }
start() { api POST /deployments/prod/runs "$1" | field 'd["id"]'; }
# planned [OPERATION]: a plan, whose run is $plan and whose digest is $digest.
planned() {
  plan=$(start "{\"command\": \"plan\", \"operation\": \"${1:-apply}\"}")
  follow "$plan" >"$scratch/plan.events"
  digest=$(api GET "/plans/$plan" | field 'd["digest"]')
}
# approved [COMMAND]: the run that carries the plan out.
approved() { start "{\"command\": \"${1:-apply}\", \"plan\": \"$plan\", \"digest\": \"$digest\"}"; }
# done_by RUN: it comes to its end, and well.
done_by() {
  follow "$1" >/dev/null
  [ "$(outcome "$1")" = succeeded ] || { api GET "/runs/$1/log" | tail -40; broken "the run $1 did not succeed: $(outcome "$1")"; }
}
