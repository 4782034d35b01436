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
