# shellcheck shell=bash
# Takes long: tests/e2e/campaign/run runs it.
# A network for clients: the members listen there and on the loopback address, and no longer where hosts reach each other. The
# role brings them there and back, also if a run ended after it had installed certificates without the address that is still used.
a_cluster
etcdctl put e2e kept
octet() { hosts list | awk -v h="$1" '$1 == h {sub(".*[.]", "", $2); print $2}'; }
on_client_network() { on "$1" "ip address $2 10.99.0.$(octet "$1")/24 dev \$(ip -o -4 route show default | awk '{print \$5}')"; }
listens() { on "$1" 'ss -Hltn "sport = 2379"'; }
for h in h1 h2 h3; do on_client_network $h replace; done
sed 's/^\(h[123]\) .*/& client_address=10.99.0.@\1@/' "$inventory" >"$state/client-network.ini"
for h in h1 h2 h3; do sed -i "s/@$h@/$(octet $h)/" "$state/client-network.ini"; done
cat >"$scratch/there.yml" <<'EOF'
etcd_flags:
  listen-client-urls: "https://{{ client_address }}:2379,https://127.0.0.1:2379"
  advertise-client-urls: "https://{{ client_address }}:2379"
EOF
there() { etcd_inventory=$state/client-network.ini etcd_playbook -e "@$scratch/there.yml" -e etcd_settle_seconds=1 -e etcd_gate_delay=1 -e etcd_gate_retries=10 "$@"; }
back() { etcd_playbook -e etcd_settle_seconds=1 -e etcd_gate_delay=1 -e etcd_gate_retries=10 "$@"; }
cp "$state/credentials/etcd/hosts/h1/server.crt" "$scratch/former.crt"
there
exits 0
for h in h1 h2 h3; do
  listens $h | matches "10.99.0.$(octet $h):2379" || broken "$h does not listen on the network for clients"
  grep -q "//10.99.0.$(octet $h):2379" "$state/credentials/etcd/etcdctl.env" || broken "etcdctl.env does not name the new address of $h"
done
there
exits 0
nothing_changed
cat "$scratch/former.crt" >"$state/h1/root/etc/etcd/pki/server.crt"
back
exits 0
for h in h1 h2 h3; do
  ! listens $h | matches 10.99.0 || broken "$h still listens on the network for clients"
  on_client_network $h delete
done
healthy
[ "$(etcdctl get e2e --print-value-only)" = kept ] || broken "data was lost"
rm "$state/client-network.ini"
