# Takes its turn: every third day.
# shellcheck shell=bash
. "$ROOT/tests/e2e/etcd-lib.sh"
fresh_five
members h1 h2 h3
exits 0
are_members h1 h2 h3
etcdctl put e2e kept
start_clients

# A healthy member is not replaced.
etcd_members replace-member h1,h2,h3 h2 --yes
exits 2
says 'h2 answers, so it is not replaced: without it the cluster etcd would survive 0 failures'
etcd_members replace-member h1,h2,h3 h9 --yes
exits 2
says 'h9 is no member of the cluster etcd. Its members are h1, h2, h3'

# Hosts outside of a limit would keep their records of the members that leave.
for playbook in remove replace; do
  windlass playbook -i "$(inventory_of h1 h2 h3)" --limit h1,h2 -e '{"etcd_removed_members": ["h3"]}' "$ROOT/playbooks/etcd-$playbook-member.yml"
  exits 2
  says 'this run has the limit h1,h2, .* Nothing has been changed. Run it again without --limit'
done

# Members that only dial others look healthy. Two of them would have no majority without the one that accepts connections.
# shellcheck disable=SC1091  # of the hosts, when they are up
prefix=$(. "$state/settings" && echo "$prefix")
peers_of() { ip netns exec "$prefix-$2" iptables "$1" INPUT -p tcp --dport 2380 -j REJECT; }
lead h1
for h in h2 h3; do
  peers_of -I $h
  on $h timeout 120 systemctl restart etcd || broken "the member of $h does not come back"
  are_members h1 h2 h3
done
etcd_members remove-member h1,h2,h3 h1 --allow-even --yes
exits 2
says 'of the 2 members that would stay, only 0 communicate with the others.*: h3 is not reached from h2 at https://'
for h in h2 h3; do peers_of -D $h; done
are_members h1 h2 h3
# etcd accepts a new member when all others have been connected for five seconds.
sleep 10

# A join that was given up by taking the host out of the inventory.
etcdctl member add ghost --learner --peer-urls=https://10.77.79.9:2380
ghost=$(etcdctl member list | awk -F', ' '$2 == "unstarted" {print $1}')
members h1 h2 h3
exits 1
says "the member $ghost .*was added and never started.*windlass etcd remove-member $ghost"
etcd_members remove-member h1,h2,h3 "$ghost" --yes
exits 0
are_members h1 h2 h3

# A join that was given up by the name of its host, which etcd does not know.
etcdctl member add h4 --learner --peer-urls="https://$(address_of h4):2380"
etcd_members remove-member h1,h2,h3,h4 h4 --yes
exits 0
are_members h1 h2 h3
# A new host with the peer address of a member.
twin=$(inventory_of h1 h2 h3 h4 h5)
sed -i "s/^h4 .*/& etcd_address=$(address_of h2)/" "$twin"
windlass apply -i "$twin" -e "etcd_bundle=$ROOT/target/etcd/3.5" --playbooks "$ROOT/playbooks" --yes
exits 1
says 'h4 has the peer address .*, which is that of the member h2'
are_members h1 h2 h3
# No host answers: that is no success.
windlass etcd remove-member h3 -i "$(inventory_of h1 h2 h3)" -e ansible_port=9 --playbooks "$ROOT/playbooks" --yes
[ "$code" != 0 ] || broken "a removal of which no host knows succeeded"
etcd_members remove-member h1,h2,h3 'h/3' --yes
exits 1
says 'a name has letters, digits'
are_members h1 h2 h3

# A member that crashed, with its data, is replaced by id.
on h3 systemctl stop etcd
old=$(member_id h3)
etcd_members replace-member h1,h2,h3 "$old" --yes
exits 0
are_members h1 h2 h3
found=$(member_id h3)
[ "$found" != "$old" ] || broken "h3 is still the old member"
on h3 'test -d /var/lib/etcd/data.removed-*/member/snap' || broken "the data of the old member was not kept"
# The hosts record the members that stay, which is what counts when none of them runs.
[ "$(on h1 "grep -o h3= /etc/etcd/formation.env" | wc -l)" = 1 ] || broken "h1 does not record h3"

# A member that lost its data is noticed, and replaced on request only.
on h2 "systemctl stop etcd && rm -rf /var/lib/etcd/data/member"
old=$(member_id h2)
members h1 h2 h3
exits 1
says 'h2 is a registered member of the cluster etcd, but /var/lib/etcd/data is empty.*windlass etcd replace-member h2'
[ "$(member_id h2)" = "$old" ] || broken "h2 was replaced without a request"
# While it is down, no other change costs the majority.
etcd_members remove-member h1,h2,h3 h3 --yes
exits 2
says 'of the 2 members that would stay, 1 is healthy, and 2 are needed: the cluster etcd would have no majority and survive no failure. Down: h2'
[ "$(etcdctl member list | wc -l)" = 3 ] || broken "a member is gone"
etcd_members replace-member h1,h2,h3 h2 --check
exits 0
says 'h2 leaves etcd.*2 members and survives 0 failures'
says 'h2 joins etcd as a learner and is promoted; the cluster then has 3 members and survives 1 failure$'
[ "$(member_id h2)" = "$old" ] || broken "a dry run replaced h2"
etcd_members replace-member h1,h2,h3 h2 --yes
exits 0
are_members h1 h2 h3
found=$(member_id h2)
[ "$found" != "$old" ] || broken "h2 is still the member without data"
members h1 h2 h3
exits 0
says 'Nothing to do'

# A new, empty machine under the old name.
old=$(member_id h3)
hosts reset h3
members h1 h2 h3
exits 1
says 'windlass etcd replace-member h3'
etcd_members replace-member h1,h2,h3 h3 --yes
exits 0
are_members h1 h2 h3
found=$(member_id h3)
[ "$found" != "$old" ] || broken "h3 is still the old member"

# A machine that is gone for good, and another one under another name. The dead one is removed first.
hosts kill h3
put_through_h1 down "while h3 is down"
members h1 h2 h4
exits 1
says 'The inventory lacks h3.*windlass etcd remove-member h3'
members h1 h2 h3 h4 h5
[ "$code" != 0 ] || broken "hosts joined while a member was down"
[ "$(etcdctl member list | wc -l)" = 3 ] || broken "a member was added while one is down"
etcd_members replace-member h1,h2,h3 h3 --yes
exits 2
says 'h3 would take the place of h3, but does not answer'
# The members that stay are to be restarted as well. Two of them need each other, so the new one joins first.
etcd_members replace-member h1,h2,h4 h3 --yes -e '{"etcd_flags": {"snapshot-count": 42000}}'
exits 0
are_members h1 h2 h4
for h in h1 h2 h4; do on $h 'tr "\0" "\n" <"/proc/$(pidof etcd)/environ" | grep "^ETCD_SNAPSHOT_COUNT=42000"' || broken "$h does not run with the new settings"; done
# The old machine wakes up: the cluster rejects it, and nothing else happens.
hosts start h3
sleep 8
are_members h1 h2 h4
etcd_members remove-member h1,h2,h3,h4 h3 --yes
exits 0
[ "$(on h3 'systemctl is-enabled etcd || true')" = disabled ] || broken "etcd on h3 is enabled"
are_members h1 h2 h4

# A host that has left joins again, as a new member, and leaves once more.
members h1 h2 h3 h4 h5
exits 0
are_members h1 h2 h3 h4 h5
etcd_members remove-member h1,h2,h3,h4,h5 h3 h5 --yes
exits 0
are_members h1 h2 h4
[ "$(on h1 "grep -c h3= /etc/etcd/formation.env || true")" = 0 ] || broken "h1 still records h3"

# A dead member that nobody replaces.
hosts kill h4
put_through_h1 down "while h4 is down"
etcd_members remove-member h1,h2,h4 h4 --yes
exits 0
says 'h4 leaves etcd.*2 members and survives 0 failures'
are_members h1 h2
hosts start h4
[ "$(etcdctl get e2e --print-value-only)" = kept ] || broken "data was lost"
history_fits
