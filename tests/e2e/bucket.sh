# shellcheck shell=bash
# bucket.sh: an S3 service on this machine, with the bucket `backups`, which fails as cases ask for: tests/s3/server.py.
s3_server=''

# s3_up [CERTIFICATE KEY]: starts it, with TLS if there is a certificate. Its address is $s3_url; the keys of its user are exported.
s3_up() {
  local scheme=http port
  [ $# = 0 ] || scheme=https
  [ -x "$ROOT/target/s3/bin/python" ] || cannot_run "tests/s3-server has not installed the S3 service"
  CERTIFICATE=${1:-} KEY=${2:-} "$ROOT/target/s3/bin/python" "$ROOT/tests/s3/server.py" >"$scratch/s3" 2>"$scratch/s3.log" &
  s3_server=$!
  # It fails as long as the line has no end.
  until read -r port AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY <"$scratch/s3"; do
    kill -0 $s3_server || { cat "$scratch/s3.log"; broken "the S3 service does not start"; }
    sleep 0.2
  done
  export AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
  s3_url=$scheme://127.0.0.1:$port
}
s3_down() { [ -z "$s3_server" ] || kill "$s3_server" 2>/dev/null || true; }

# a_cluster_and_a_bucket: a healthy cluster, and the S3 service that windlass uses. ${deployment[@]} are the arguments that name the cluster, $place is
# for its backups.
a_cluster_and_a_bucket() {
  a_cluster
  mapfile -t deployment < <(apply_arguments)
  deployment+=(-e etcd_settle_seconds=1)
  # shellcheck disable=SC2034  # for the case
  place=s3://backups/karmada/prod
  trap 's3_down; rm -rf "$scratch" || true' EXIT
  s3_up
  export AWS_ENDPOINT_URL_S3=$s3_url XDG_CACHE_HOME=$scratch/cache
}

# s3_fault METHOD PATH KIND COUNT: what happens to the next requests.
s3_fault() { curl -sSfk -X PUT "$s3_url/faults" -d "{\"method\": \"$1\", \"path\": \"$2\", \"kind\": \"$3\", \"count\": $4}"; }
s3_no_faults() { curl -sSfk -X DELETE "$s3_url/faults"; }
# s3_requests: all that there were, one per line.
s3_requests() { curl -sSfk "$s3_url/log"; }
