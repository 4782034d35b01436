# shellcheck shell=bash
# management-cluster.sh: an API server on this machine for the custom resources of cases, beside the hosts that they describe. Its
# programs are those of the bundle. management_up starts it, and management_down ends it; $management is its kubeconfig. After
# management_jobs it does Jobs, too.
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
  at_management wait --for=condition=Established --timeout=60s crd/karmadadeployments.windlass.dev crd/runs.windlass.dev \
    crd/etcdbackups.windlass.dev
}

# management_jobs: the controllers of Jobs, and a node that runs pods with the image windlass as processes of this machine.
management_jobs() {
  local there=$state/management
  "$(bundled kube-controller-manager)" --kubeconfig "$management" --controllers job,garbagecollector --leader-elect=false --port 0 \
    --secure-port "$(management_port)" --bind-address 127.0.0.1 >"$there/controllers.log" 2>&1 &
  management_controllers=$!
  "$ROOT/tests/kubernetes/node" "$(sed -n 's/.*server: "\([^"]*\)".*/\1/p' "$management")" "$there/ca.crt" "$there/admin.crt" "$there/admin.key" \
    "windlass=$WINDLASS" >"$state/node.log" 2>&1 &
  management_node=$!
}

# job_template [ADDRESS]: the Job that the operator makes Jobs from, with the settings of operator_up; the bundle has another path, as in another
# container. ADDRESS: another one that workers may connect to.
job_template() {
  ln -sfn "$WINDLASS_BUNDLE" "$state/bundle-of-jobs"
  cat <<END
apiVersion: batch/v1
kind: Job
spec:
  template:
    spec:
      automountServiceAccountToken: false
      containers:
        - name: windlass
          image: windlass
          env:
            - {name: HOME, value: $state}
            - {name: KUBECONFIG, value: $management}
            - {name: WINDLASS_RESOURCE_BUNDLES, value: "karmada=$state/bundle-of-jobs"}
            - {name: WINDLASS_RESOURCE_NETWORKS, value: "$(hosts_network)${1:+,$1}"}
            - {name: WINDLASS_RUNS, value: "true"}
            - {name: WINDLASS_RUNS_DIRECTORY, value: $state/runs}
END
}

# pod_process: the process of the pod that runs.
pod_process() {
  at_management get pods -o 'jsonpath={range .items[?(@.status.phase=="Running")]}{.status.containerStatuses[0].containerID}{"\n"}{end}' |
    sed -n 's,^process://,,p' | head -1
}

management_down() {
  local process
  ! declare -F s3_down >/dev/null || s3_down
  for process in ${operator:-} ${management_node:-} ${management_controllers:-} ${management_server:-} ${management_etcd:-}; do
    kill "$process" 2>/dev/null || continue
    wait "$process" 2>/dev/null || true
  done
}

# run_says RUN: the status of its condition, and its reason.
run_says() { at_management get run "$1" -o 'jsonpath={.status.conditions[0].status} {.status.conditions[0].reason}'; }
run_is() { [ "$(run_says "$1")" = "$2" ]; }
# digest_of NAME: of the plan of a deployment.
digest_of() { at_management get kd "$1" -o 'jsonpath={.status.look.plan.digest}'; }
# run_of NAME DIGEST: approves a plan of the deployment prod.
run_of() {
  printf 'apiVersion: windlass.dev/v1alpha1\nkind: Run\nmetadata: {name: %s}\nspec: {deployment: prod, operation: Apply, planDigest: "%s"}\n' "$1" "$2" |
    at_management apply -f -
}
# deployment [MORE]: the object prod, on h1, h2 and h3. MORE: further lines of its spec.
deployment() {
  printf 'apiVersion: windlass.dev/v1alpha1\nkind: KarmadaDeployment\nmetadata: {name: prod, namespace: default}\nspec:\n  bundle: karmada\n'
  printf '  ssh: {user: root, privateKey: {secret: {name: ssh, key: id}}}\n  hosts:\n'
  for h in h1 h2 h3; do printf '    - {name: %s, address: %s, fingerprint: "%s"}\n' $h "$(address_of $h)" "$(fingerprint_of $h)"; done
  printf '  controlPlane: {hosts: [h1, h2, h3]}\n  etcd: {managed: {hosts: [h1, h2, h3]}}\n%s' "${1:-}"
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
