# shellcheck shell=bash
# management-cluster.sh: an API server on this machine for the custom resources of cases, beside the hosts that they describe. Its
# programs are those of the bundle. management_up starts it, and management_down ends it; $management is its kubeconfig.
management=$state/management/kubeconfig

management_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
at_management() { "$(bundled kubectl)" --kubeconfig "$management" --request-timeout=20s "$@"; }

management_up() {
  local there=$state/management etcd peer port
  rm -rf "$there"
  (umask 077 && mkdir -p "$there")
  etcd=$(management_port) peer=$(management_port) port=$(management_port)
  (
    cd "$there" || exit
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.crt -subj /CN=management -days 2
    for name in server admin; do
      openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout $name.key -out $name.csr -subj "/O=system:masters/CN=$name"
      printf 'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n' >$name.ext
      openssl x509 -req -in $name.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out $name.crt -days 2 -extfile $name.ext
    done
    openssl genrsa -out accounts.key 2048
    openssl rsa -in accounts.key -pubout -out accounts.pub
  ) >"$there/openssl.log" 2>&1
  "$(bundled etcd)" --data-dir "$there/etcd" --listen-client-urls "http://127.0.0.1:$etcd" --advertise-client-urls "http://127.0.0.1:$etcd" \
    --listen-peer-urls "http://127.0.0.1:$peer" --initial-advertise-peer-urls "http://127.0.0.1:$peer" \
    --initial-cluster "default=http://127.0.0.1:$peer" >"$there/etcd.log" 2>&1 &
  management_etcd=$!
  "$(bundled kube-apiserver)" --etcd-servers "http://127.0.0.1:$etcd" --bind-address 127.0.0.1 --secure-port "$port" \
    --tls-cert-file "$there/server.crt" --tls-private-key-file "$there/server.key" --client-ca-file "$there/ca.crt" \
    --authorization-mode RBAC --disable-admission-plugins ServiceAccount --endpoint-reconciler-type none \
    --service-account-issuer https://management --service-account-key-file "$there/accounts.pub" \
    --service-account-signing-key-file "$there/accounts.key" --service-cluster-ip-range 10.96.0.0/16 >"$there/apiserver.log" 2>&1 &
  management_server=$!
  trap 'management_down; rm -rf "$scratch" || true' EXIT
  cat >"$management" <<END
apiVersion: v1
kind: Config
current-context: management
clusters: [{name: management, cluster: {server: "https://127.0.0.1:$port", certificate-authority: $there/ca.crt}}]
users: [{name: admin, user: {client-certificate: $there/admin.crt, client-key: $there/admin.key}}]
contexts: [{name: management, context: {cluster: management, user: admin}}]
END
  eventually at_management get --raw /readyz
  # A server before 1.23 knows no rules, and leaves them out.
  "$WINDLASS" crd | at_management apply --validate=false -f -
  at_management wait --for=condition=Established --timeout=60s crd/karmadadeployments.windlass.dev crd/runs.windlass.dev
}

management_down() {
  local process
  for process in ${operator:-} ${management_server:-} ${management_etcd:-}; do
    kill "$process" 2>/dev/null || continue
    wait "$process" 2>/dev/null || true
  done
}

# operator_up [OPTION]...: an operator with the management cluster; its process is $operator, and its output is in $state/operator.log.
operator_up() {
  KUBECONFIG=$management WINDLASS_RESOURCE_BUNDLES=karmada=$WINDLASS_BUNDLE WINDLASS_RESOURCE_NETWORKS=$(hosts_network) \
    "$WINDLASS" operator ${WINDLASS_STAND_INS:+-e "@$WINDLASS_STAND_INS"} --playbooks "$ROOT/playbooks" "$@" >>"$state/operator.log" 2>&1 </dev/null &
  operator=$!
}

# The addresses of the hosts.
hosts_network() {
  local h all=
  for h in h1 h2 h3 h4 h5; do all+=,$(address_of "$h"); done
  echo "${all#,}"
}

# fingerprint_of HOST
fingerprint_of() { on "$1" ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub | cut -d' ' -f2; }

# condition NAME TYPE: the status of a condition of a deployment, and its reason.
condition() { at_management get kd "$1" -o "jsonpath={.status.conditions[?(@.type==\"$2\")].status} {.status.conditions[?(@.type==\"$2\")].reason}"; }

# has_condition NAME TYPE "STATUS REASON"
has_condition() { [ "$(condition "$1" "$2")" = "$3" ]; }
# shows NAME TYPE "STATUS REASON": it has this condition now.
shows() { has_condition "$@" || broken "the condition $2 of $1 is $(condition "$1" "$2"), not $3"; }
