# Takes its turn: every third day.
# shellcheck shell=bash
# Prometheus reads a real cluster by the files of windlass etcd monitoring. Every metric that a rule or a panel names is there; of a healthy
# cluster the rules say nothing, and they notice a member that stops, and a lost majority.
a_cluster
files=$scratch/files
deployment=(-i "$inventory" -e "etcd_bundle=$ROOT/target/etcd/3.5" -e etcd_metrics_address=0.0.0.0)
etcd_playbook -e etcd_metrics_address=0.0.0.0
exits 0
windlass etcd monitoring "$files" "${deployment[@]}"
exits 0
says 'targets.yaml: the members'
cat >"$scratch/prometheus.yml" <<END
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [$files/alerts.yaml]
scrape_configs:
  - job_name: any
    file_sd_configs: [{files: [$files/targets.yaml]}]
END
port=$((20000 + RANDOM % 10000))
prometheus --config.file="$scratch/prometheus.yml" --storage.tsdb.path="$scratch/data" --web.listen-address=127.0.0.1:$port >"$scratch/prometheus.log" 2>&1 &
prometheus=$!
trap 'kill $prometheus || true; wait $prometheus || true; rm -rf "$scratch"' EXIT
ask() { curl -s --get --data-urlencode "query=$1" "http://127.0.0.1:$port/api/v1/query" | jq -r "${2:-.data.result[0].value[1] // 0}"; }
# within_seconds N COMMAND...: it succeeds by then.
within_seconds() {
  local until=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $until ] || { cat "$scratch/prometheus.log"; ask ALERTS .; broken "not in time: $*"; }
    sleep 1
  done
}
are_up() { [ "$(ask 'sum(up{etcd_cluster="etcd"})')" = "$1" ]; }
# alert NAME STATE INSTANCE: STATE is pending or firing, INSTANCE may be empty.
alert() { [ "$(ask "count(ALERTS{alertname='$1', alertstate='$2', instance='$3'})")" = 1 ]; }
within_seconds 60 are_up 3
# Rates need two looks, and a write between them.
for n in 1 2 3; do etcdctl put watched $n; sleep 2; done
mapfile -t metrics < <(grep -ohE '\b[a-z_]+\{etcd_cluster=' "$files"/* | sed 's/{.*//' | sort -u)
[ ${#metrics[@]} -gt 15 ] || broken "only ${#metrics[@]} metrics are named"
for metric in "${metrics[@]}"; do
  [ "$(ask "count($metric{etcd_cluster=\"etcd\"})")" -ge 1 ] || broken "etcd has no metric $metric"
done
[ "$(ask 'count(ALERTS{alertname!="EtcdNotMonitored"})')" = 0 ] || { ask ALERTS .; broken "something is said of a healthy cluster"; }
on h3 systemctl stop etcd
within_seconds 30 alert EtcdMemberDown pending h3
[ "$(ask 'count(ALERTS{alertname="EtcdQuorumLost"})')" = 0 ] || broken "the majority is there"
on h2 systemctl stop etcd
within_seconds 150 alert EtcdQuorumLost firing ''
within_seconds 30 alert EtcdNoLeader firing h1
on h2 systemctl start etcd
on h3 systemctl start etcd
within_seconds 60 are_up 3
etcd_playbook
exits 0
