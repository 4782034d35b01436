# shellcheck shell=bash
. "$ROOT/tests/e2e/etcd-lib.sh"
fresh_five
# Timers of local backups come and go with the members.
options=(-e etcd_local_backup_minutes=60)
members h1
exits 0
are_members h1
etcdctl put e2e kept
start_clients
# The plan says what joins; a dry run changes nothing.
windlass plan -i "$(inventory_of h1 h2 h3)" -e "etcd_bundle=$ROOT/target/etcd/3.5" --playbooks "$ROOT/playbooks"
says 'h2 joins etcd as a learner and is promoted; the cluster then has 2 members and survives 0 failures'
says 'h3 joins etcd as a learner and is promoted; the cluster then has 3 members and survives 1 failure$'
are_members h1
members h1 h2 h3
exits 0
are_members h1 h2 h3
members h1 h2 h3
exits 0
says 'Nothing to do'
# A new member that the others do not reach gets no vote. With the right setting, its join is completed.
unreached=$(inventory_of h1 h2 h3 h4 h5)
sed -i "s#^h4 .*#& etcd_flags='{\"listen-peer-urls\": \"https://0.0.0.0:2390\"}'#" "$unreached"
windlass apply -i "$unreached" -e "etcd_bundle=$ROOT/target/etcd/3.5" --playbooks "$ROOT/playbooks" --yes
exits 2
says 'h4 was added to the cluster etcd, but h4 is not reached from h[123] at https://[0-9.]+:2380 .*It is not promoted'
[ "$(etcdctl member list | awk -F', ' '$3 == "h4" {print $6}')" = true ] || broken "h4 is no learner"
members h1 h2 h3 h4 h5
exits 0
are_members h1 h2 h3 h4 h5
etcd_inventory=$inventory etcd_playbook "${options[@]}"
exits 0
for h in h1 h2 h3 h4 h5; do recap $h changed 0; done
on h4 systemctl start etcd-backup

# The inventory alone removes nobody.
members h1 h2 h3
exits 1
says 'The inventory lacks h4, h5.*windlass etcd remove-member h4 h5'
# Back to three; one of those that leave is the leader.
lead h5
etcd_members remove-member h1,h2,h3,h4,h5 h4
exits 2
says '4 members would stay, an even number. The cluster would survive 1 failure, no more than with 3[.]'
etcd_members remove-member h1,h2,h3,h4,h5 h4 h5 --check
exits 0
says 'h4, h5 leave etcd; data is moved away, not deleted. The cluster then has 3 members and survives 1 failure$'
are_members h1 h2 h3 h4 h5
etcd_members remove-member h1,h2,h3,h4,h5 h4 h5 --yes
exits 0
are_members h1 h2 h3
for h in h4 h5; do
  [ "$(on $h 'systemctl is-enabled etcd || true')" = disabled ] || broken "etcd on $h is enabled"
  found=$(on $h 'systemctl is-active etcd || true')
  [ "$found" != active ] || broken "etcd on $h runs"
  on $h 'test -d /var/lib/etcd/data.removed-*/member/snap' || broken "the data of $h was not kept"
  found=$(on $h 'systemctl list-unit-files "etcd-backup*" --no-legend || true')
  [ -z "$found" ] || broken "the timer of $h is left"
done
on h4 'test -n "$(find /var/backups/etcd/local -name "*.db")"' || broken "the local backup of h4 was not kept"
on h1 systemctl is-active etcd-backup.timer || broken "h1 has no timer any more"
etcd_members remove-member h1,h2,h3,h4,h5 h4 h5 --yes
exits 0
says 'Nothing to do'
# They come back as new members: the old data is not used.
members h1 h2 h3 h4 h5
exits 0
are_members h1 h2 h3 h4 h5
etcd_members remove-member h1,h2,h3,h4,h5 h2 h3 h4 h5 --yes
exits 0
are_members h1
members h1
exits 0
etcd_members remove-member h1 h1 --yes
exits 2
says 'no member of the cluster etcd would stay'
[ "$(etcdctl get e2e --print-value-only)" = kept ] || broken "data was lost"
history_fits
