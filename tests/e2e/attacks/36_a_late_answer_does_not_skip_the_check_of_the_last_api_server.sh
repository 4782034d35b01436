# shellcheck shell=bash
# The check before an API server restarts (karmada_settings, others_serve.yml): it is skipped only if the API server of this host certainly does
# not serve. Servers in the hosts' networks answer in place of Karmada's.
command -v python3 >/dev/null || cannot_run "this machine has no python3"
fresh
cat "$inventory" >"$scratch/hosts.ini"
printf '[karmada_control_plane]\nh1\nh2\nh3\n' >>"$scratch/hosts.ini"
printf -- '- hosts: h1\n  gather_facts: false\n  tasks:\n    - import_role: {name: karmada_settings, tasks_from: others_serve}\n' >"$scratch/check.yml"
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$scratch/ca.key" -subj /CN=ca -days 2 -out "$scratch/ca.crt" 2>/dev/null
openssl req -newkey rsa:2048 -nodes -keyout "$scratch/server.key" -subj /CN=server -out "$scratch/server.csr" 2>/dev/null
printf 'subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n' >"$scratch/server.ext"
openssl x509 -req -in "$scratch/server.csr" -CA "$scratch/ca.crt" -CAkey "$scratch/ca.key" -days 2 -extfile "$scratch/server.ext" -out "$scratch/server.crt" 2>/dev/null
for h in h1 h2 h3; do
  mkdir -p "$state/$h/root/etc/windlass/karmada/apiserver/pki"
  cp "$scratch/ca.crt" "$state/$h/root/etc/windlass/karmada/apiserver/pki/ca.crt"
done
on h1 'printf "[Service]\nExecStart=/bin/sleep infinity\n" >/etc/systemd/system/karmada-apiserver.service && systemctl daemon-reload && systemctl start karmada-apiserver'

cat >"$scratch/server.py" <<'PYTHON'
# server.py CERTIFICATE KEY PORT=ANSWER...: answers on loopback: ok, bad, late (never), late-then-ok (from the second request on).
import http.server, ssl, sys, threading, time
def serve(port, answer):
    count = [0]
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            count[0] += 1
            if answer == "late" or answer == "late-then-ok" and count[0] == 1:
                time.sleep(60)
            self.send_response(500 if answer == "bad" else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()
        def log_message(self, *words):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.serve_forever()
for one in sys.argv[3:]:
    port, answer = one.split("=")
    threading.Thread(target=serve, args=(int(port), answer), daemon=True).start()
sys.stdin.read()
PYTHON
prefix=$(sed -n 's/^prefix=//p' "$state/settings")
# The API server, the aggregated API server and the webhook of a host.
whole() { echo "5443=$1 7443=ok 8443=ok"; }
# the_check WORDS-OF-H1 WORDS-OF-H2: the check for h1, while the servers of h1 and h2 answer so, and h3 has none.
# shellcheck disable=SC2086  # several words
the_check() {
  local pids=()
  mkfifo "$scratch/hold"
  ip netns exec "$prefix-h1" python3 "$scratch/server.py" "$scratch/server.crt" "$scratch/server.key" $1 <"$scratch/hold" &
  pids+=($!)
  ip netns exec "$prefix-h2" python3 "$scratch/server.py" "$scratch/server.crt" "$scratch/server.key" $2 <"$scratch/hold" &
  pids+=($!)
  exec 8>"$scratch/hold"
  sleep 1
  ANSIBLE_ROLES_PATH=$ROOT/roles windlass playbook -i "$scratch/hosts.ini" "$scratch/check.yml"
  exec 8>&-
  wait "${pids[@]}"
  rm "$scratch/hold"
}
refused() {
  the_check "$@"
  exits 2
  says 'h1 has the last API server of karmada that serves'
}
passes() {
  the_check "$@"
  exits 0
}
refused "$(whole ok)" ""
refused "$(whole late)" ""
refused "$(whole late-then-ok)" ""
passes "$(whole bad)" ""
passes "" ""
passes "$(whole late)" "$(whole ok)"
# Clients use an API server whose webhook is down. Another one in the same state is enough, but not for one that is whole.
refused "5443=ok 7443=ok" ""
passes "5443=ok 7443=ok" "5443=ok 7443=ok"
refused "$(whole ok)" "5443=ok 7443=ok"
# What does not run has no open requests.
on h1 systemctl stop karmada-apiserver
passes "$(whole late)" ""
fresh
