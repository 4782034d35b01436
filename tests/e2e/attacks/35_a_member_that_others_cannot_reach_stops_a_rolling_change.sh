# shellcheck shell=bash
# Settings with which a restarted member passes its own health checks, although it takes the majority down when all have them; and a
# process that takes its time to stop. The change stops at the first member.
a_cluster
etcd_playbook -e '{"etcd_flags": {"listen-peer-urls": "https://127.0.0.1:2380"}}'
exits 2
says 'sets listen-peer-urls to https://127.0.0.1:2380: the other members of the cluster cannot reach h[123] there'
for h in h1 h2 h3; do recap $h changed 0; done

accepts_writes() { for _ in $(seq 60); do ! etcdctl put e2e "after a change that failed" || return 0; sleep 1; done; return 1; }
# stopped_at_one OPTION...: the change fails, one member was restarted, and the cluster still serves: also when another member restarts
# afterwards, because only the first one has got the new files.
stopped_at_one() {
  local turn other
  starts >"$scratch/before"
  etcd_playbook -e etcd_gate_retries=5 -e etcd_gate_delay=1 -e etcd_settle_seconds=1 "$@"
  exits 2
  starts | paste "$scratch/before" - | awk '$1 != $2 {print "h" NR}' >"$scratch/turns"
  [ "$(wc -l <"$scratch/turns")" = 1 ] || broken "not exactly one member was restarted: $(xargs <"$scratch/turns")"
  accepts_writes || broken "the majority takes no writes"
  turn=$(cat "$scratch/turns")
  for other in h1 h2 h3; do
    [ $other != "$turn" ] || continue
    on $other sha256sum --check --status /run/etcd/started-with || broken "$other has files that its process was not started with"
  done
  if [ "$turn" = h3 ]; then other=h1; fi
  on $other timeout 120 systemctl restart etcd || broken "the member of $other does not come back"
  accepts_writes || broken "the majority takes no writes after a restart of $other"
}
# It dials the others, and they dial it in vain. Hosts outside of a limit notice it too.
bad='{"etcd_flags": {"listen-peer-urls": "https://0.0.0.0:2390"}}'
stopped_at_one --limit h1 -e "$bad"
says 'Check that the other members reach this one'
says 'h1 was restarted, but h1 is not reached from h[23] at https://[0-9.]+:2380 '
# Once more, for each of the others and for all: h1 has these settings now, and no other member follows it.
starts >"$scratch/before"
for limit in h2 h1,h2,h3; do
  etcd_playbook -e etcd_gate_retries=5 -e etcd_gate_delay=1 -e etcd_settle_seconds=1 --limit "$limit" -e "$bad"
  exits 2
  says 'h[23] is not restarted: of the 3 members of the cluster etcd only 1 would stay up and be reached by the others, and 2 are needed: .*h1 is not reached from h[23] '
done
starts | diff "$scratch/before" - || broken "a second member was restarted"
etcd_playbook -e etcd_settle_seconds=1
exits 0
healthy

# Members that reject the certificate with which windlass queries them, or that answer late, serve nevertheless. Their files wait for their
# turn, too; and a member that never became ready with a bad setting gets a good one.
fails='{"etcd_flags": {"max-wals": "many"}}'
for h in h1 h2 h3; do
  openssl req -x509 -key "$state/credentials/etcd/hosts/$h/client.key" -subj /CN=stranger -days 2 -out "$scratch/stranger.crt"
  cat "$scratch/stranger.crt" >"$state/$h/root/etc/etcd/pki/client.crt"
done
stopped_at_one -e "$fails"
says 'etcd is not healthy: https://127\.0\.0\.1:2379 does not answer'
etcd_playbook -e etcd_settle_seconds=1
exits 0
healthy
first=$(leader)
for h in h1 h2 h3; do [ $h = "$first" ] || late=$h; done
on "$late" 'kill -STOP $(pidof etcd)'
: >"$output"
{
  for _ in $(seq 600); do ! grep -aq 'Query the member\]' "$output" || break; sleep 0.2; done
  sleep 6
  on "$late" 'kill -CONT $(pidof etcd)'
} &
stopped_at_one -e "$fails"
wait
etcd_playbook -e etcd_settle_seconds=1
exits 0
healthy

# The old process still answers when the new one should.
for h in h1 h2 h3; do
  on $h 'mkdir -p /etc/systemd/system/etcd.service.d && printf "[Service]\nExecStop=/bin/sleep 20\n" >/etc/systemd/system/etcd.service.d/drain.conf && systemctl daemon-reload'
done
stopped_at_one -e '{"etcd_flags": {"max-wals": "many"}}'
says 'etcd is not healthy: https://127\.0\.0\.1:2379 does not answer'
for h in h1 h2 h3; do on $h 'rm -r /etc/systemd/system/etcd.service.d && systemctl daemon-reload'; done
etcd_playbook -e etcd_settle_seconds=1
exits 0
healthy

# A member that reaches no other and sees no leader gets its settings back, while the others serve; also one that is still being stopped,
# for the restart with these settings, when the run begins.
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$scratch/other.key" -subj /CN=other -days 2 -out "$scratch/other.crt" 2>/dev/null
cat "$scratch/other.crt" >"$state/h3/root/etc/etcd/pki/other.crt"
on h3 'chmod 644 /etc/etcd/pki/other.crt && sed -i "s#^ETCD_PEER_TRUSTED_CA_FILE=.*#ETCD_PEER_TRUSTED_CA_FILE=/etc/etcd/pki/other.crt#" /etc/etcd/etcd.env'
on h3 'mkdir -p /etc/systemd/system/etcd.service.d && printf "[Service]\nExecStop=/bin/sleep 8\n" >/etc/systemd/system/etcd.service.d/drain.conf && systemctl daemon-reload && systemctl restart --no-block etcd'
[ "$(on h3 systemctl is-active etcd)" = deactivating ] || broken "h3 is not being stopped"
put_through_h1 e2e "while h3 sees no leader"
etcd_playbook -e etcd_settle_seconds=1
exits 0
healthy
on h3 'rm -r /etc/systemd/system/etcd.service.d && systemctl daemon-reload'

# An inventory of another host alone: no second, empty cluster with the credentials of the one that runs.
rm -rf "$state/credentials"
hosts reset h1
hosts reset h2
etcd_inventory=$(inventory_of h1) etcd_playbook
exits 0
# no_second_cluster WORDS: a run for h2 is refused, and leaves etcdctl.env alone.
no_second_cluster() {
  cp "$state/credentials/etcd/etcdctl.env" "$scratch/etcdctl.env"
  etcd_inventory=$(inventory_of h2) etcd_playbook
  exits 2
  says "$1"
  says 'would make a second cluster'
  diff "$scratch/etcdctl.env" "$state/credentials/etcd/etcdctl.env" || broken "etcdctl.env leads to another cluster"
}
no_second_cluster 'the cluster etcd runs on hosts that the inventory lacks: https://'
# URLs with an IPv6 address are quoted.
sed -i "s#^export ETCDCTL_ENDPOINTS=\(.*\)#export ETCDCTL_ENDPOINTS='\1,https://[fd00::1]:2379'#" "$state/credentials/etcd/etcdctl.env"
no_second_cluster 'the cluster etcd runs on hosts that the inventory lacks: https://[0-9.]+:2379\. '
# Without the key, the member rejects the query. Without the CA, nothing can be queried.
mv "$state/credentials/etcd/admin.key" "$scratch/admin.key"
no_second_cluster 'the cluster etcd runs on hosts that the inventory lacks: https://[0-9.]+:2379\. '
mv "$state/credentials/etcd/ca.crt" "$scratch/ca.crt"
no_second_cluster 'windlass cannot query them: .*Restore ca.crt'
# Members that do not answer are no reason to refuse: their machines may be gone.
on h1 systemctl stop etcd
mv "$scratch/ca.crt" "$scratch/admin.key" "$state/credentials/etcd/"
etcd_inventory=$(inventory_of h2) etcd_playbook --check
exits 0
fresh
