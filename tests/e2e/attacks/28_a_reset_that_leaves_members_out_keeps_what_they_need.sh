# shellcheck shell=bash
# Neither the authority of members that stay, nor their majority. Nor are data left behind for an empty cluster in their place.
a_cluster
etcdctl put e2e kept
credentials=$state/credentials/etcd
reset() { windlass playbook "$@" -e confirm_cluster_name=etcd "$ROOT/playbooks/etcd-reset.yml"; }
on h2 systemctl stop etcd
members_files >"$scratch/before"
for how in "-i $inventory --limit h1" "-i $(inventory_of h1)"; do
  # shellcheck disable=SC2086
  reset $how
  exits 2
  says 'the cluster etcd would lose its majority: of its 3 members h2, h3 would stay, and 1 of them is healthy'
done
# A question that cannot be asked, and one that the members reject, are no answer.
on h1 mv /etc/etcd/pki/client.key /root/client.key
reset -i "$(inventory_of h1)"
exits 2
says 'the members of the cluster etcd were not queried from h1: .*client\.key.*h2, h3 would stay'
on h1 mv /root/client.key /etc/etcd/pki/client.key
on h1 cat /etc/etcd/pki/client.crt >"$scratch/client.crt"
openssl req -x509 -key "$credentials/hosts/h1/client.key" -subj /CN=stranger -days 2 -out "$scratch/stranger.crt"
cat "$scratch/stranger.crt" >"$state/h1/root/etc/etcd/pki/client.crt"
reset -i "$(inventory_of h1)"
exits 2
says 'the members of the cluster etcd were not queried from h1: .*alert.*h2, h3 would stay'
cat "$scratch/client.crt" >"$state/h1/root/etc/etcd/pki/client.crt"
members_files >"$scratch/after"
diff "$scratch/before" "$scratch/after" || broken "it changed something"
for h in h1 h3; do on $h systemctl stop etcd & done
wait
etcd_playbook -e etcd_data_dir=/var/lib/etcd/elsewhere
exits 2
says 'h1 has its data in /var/lib/etcd/data, but etcd_data_dir is /var/lib/etcd/elsewhere. Nothing has been changed'
for h in h1 h2 h3; do on $h systemctl start --no-block etcd & done
wait
well
[ "$(etcdctl get e2e --print-value-only)" = kept ] || broken "data was lost"
# Members that are full, or that answer late, have a majority to keep, although none of them is healthy.
cat >"$scratch/alarm.yml" <<'EOF'
- hosts: h1
  become: true
  gather_facts: false
  tasks:
    - name: Raise an alarm
      ansible.builtin.uri:
        url: https://127.0.0.1:2379/v3/maintenance/alarm
        method: POST
        body_format: json
        body: {action: ACTIVATE, memberID: "{{ member }}", alarm: "{{ alarm }}"}
        ca_path: /etc/etcd/pki/ca.crt
        client_cert: /etc/etcd/pki/client.crt
        client_key: /etc/etcd/pki/client.key
EOF
h1_is=$(printf %u "0x$(etcdctl member list | awk -F', ' '$3 == "h1" {print $1}')")
raised() { # ALARM: of h1
  windlass playbook -i "$inventory" -e "alarm=$1" -e "member=$h1_is" "$scratch/alarm.yml"
  exits 0
  etcdctl alarm list | grep "$1" || broken "there is no alarm"
}
data() { for h in h1 h2 h3; do on $h 'ls -d /var/lib/etcd/data/member /var/lib/etcd/data.cluster.json'; done; members_files; }
majority_is_kept() { # LIMIT WORDS
  data >"$scratch/before"
  reset -i "$inventory" --limit "$1"
  exits 2
  says "the cluster etcd would lose its majority: of its 3 members $2"
  data >"$scratch/after"
  diff "$scratch/before" "$scratch/after" || broken "it removed something"
}
raised NOSPACE
majority_is_kept h2,h3 'h1 would stay, and 1 of them is healthy; h1, h2, h3 run\.'
etcdctl alarm disarm
raised CORRUPT
majority_is_kept h3 'h1, h2 would stay, and 1 of them is healthy'
etcdctl alarm disarm
on h1 systemctl stop etcd
on h3 'kill -STOP $(pidof etcd)'
majority_is_kept h2 'h1, h3 would stay, and 0 of them are healthy; h2, h3 run\.'
on h3 'kill -CONT $(pidof etcd)'
on h1 systemctl start --no-block etcd
well
[ "$(etcdctl get e2e --print-value-only)" = kept ] || broken "data was lost"
# If only the CA was restored, this machine has no certificates of hosts. etcd names the members that stay, and so does
# etcdctl.env when nothing is left on the host to ask with.
mv "$credentials/hosts" "$scratch/hosts"
reset -i "$(inventory_of h1)"
exits 0
says 'credentials/etcd is kept: these members of the cluster are not part of this run: h2, h3'
reset -i "$(inventory_of h1)"
exits 0
says 'credentials/etcd is kept: .*etcdctl.env names 3 members, more than this run has'
mv "$scratch/hosts" "$credentials/hosts"
reset -i "$(inventory_of h1)"
exits 0
says 'credentials/etcd is kept: these hosts still have certificates of its CA: h2, h3'
[ -e "$credentials/ca.key" ] || broken "the authority of h2 and h3 is gone"
[ "$(etcdctl --command-timeout=20s endpoint health 2>&1 | grep -c 'is healthy')" = 2 ] || broken "h2 and h3 are not healthy"
# Of a majority that is gone for good there is nothing to keep.
on h3 systemctl stop etcd
reset -i "$(inventory_of h2)"
exits 0
# Nor of one that a member waits for since it was started: it accepts connections, and never answers.
on h3 systemctl start --no-block etcd
sleep 3
reset -i "$(inventory_of h3)" --check
exits 0
# The whole cluster goes, also from a host where nothing can be asked any more.
on h3 rm /etc/etcd/pki/client.key
reset -i "$inventory"
exits 0
[ ! -e "$credentials" ] || broken "credentials are left"
# A first formation with a wrong setting: the members wait for each other for ever, until they get the right one.
etcd_playbook -e '{"etcd_flags": {"peer-cert-allowed-cn": "nobody"}, "etcd_gate_retries": 0}'
exits 2
etcd_playbook
exits 0
healthy
