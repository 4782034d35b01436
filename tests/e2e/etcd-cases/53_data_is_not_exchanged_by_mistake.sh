# shellcheck shell=bash
# What --undo, a restore and recover must refuse: old data that is not there, records of different restores, another data directory, and
# members with the data of another cluster.
. "$ROOT/tests/e2e/etcd-lib.sh"
fresh_five
members h1 h2 h3
exits 0
three=(-i "$(inventory_of h1 h2 h3)" -e "etcd_bundle=$ROOT/target/etcd/3.5" --playbooks "$ROOT/playbooks")
etcdctl put kept 1
windlass etcd backup "$scratch/backups" "${three[@]}"
exits 0
backup=$(find "$scratch/backups" -mindepth 1 -maxdepth 1 -name '*-r*')
etcdctl put later 1

# The inventory lost its etcd_data_dir: the new data would go where no member reads it.
windlass etcd restore "$backup" --name karmada "${three[@]}" -e etcd_data_dir=/var/lib/etcd/other
exits 2
says 'has its data in /var/lib/etcd/data, but etcd_data_dir is /var/lib/etcd/other. Nothing has been changed'

# With --limit, hosts of the control plane would not be held.
for playbook in restore restore-undo restore-release; do
  windlass playbook "${three[@]:0:4}" --limit h1,h2,h3 "$ROOT/playbooks/etcd-$playbook.yml"
  exits 2
  says 'this run has the limit h1,h2,h3, .* Nothing has been changed. Run it again without --limit'
  for h in h1 h2 h3; do recap $h changed 0; done
done

windlass etcd restore "$backup" --name karmada "${three[@]}"
exits 0
found=$(etcdctl get later)
[ -z "$found" ] || broken "the restore kept what was written later"
etcdctl put since 1

# not_undone WORDS: --undo refuses, and the restored data stays.
not_undone() {
  windlass etcd restore --undo --name karmada "${three[@]}"
  exits 2
  says "$1"
  [ "$(etcdctl get since --print-value-only)" = 1 ] || broken "the restored data is gone"
  for h in h1 h2 h3; do on $h grep -q '"restored"' /var/lib/etcd/data.restore.json || [ "$h" = h2 ] || broken "the record of $h has changed"; done
}
aside=$(on h2 'ls -d /var/lib/etcd/data.before-restore-*')
on h2 "mv $aside /root/aside"
not_undone 'h2 does not have its data from before the restore'
on h2 "mv /root/aside $aside"
# Another restore was made meanwhile, which h2 did not see; or it was released on one host only.
on h2 'cp -p /var/lib/etcd/data.restore.json /root/record && sed -i "s/\"id\": \"[^\"]*\"/\"id\": \"20200101T000000Z-00000000\"/" /var/lib/etcd/data.restore.json'
windlass etcd restore --undo --name karmada "${three[@]}"
[ "$code" != 0 ] || broken "a restore was undone that not all hosts know"
on h2 'cp -p /root/record /var/lib/etcd/data.restore.json && sed -i "s/\"restored\"/\"released\"/" /var/lib/etcd/data.restore.json'
not_undone 'do not agree on the last restore, or it was released on some of them'
on h2 'cp -p /root/record /var/lib/etcd/data.restore.json'
# The old data of one member is damaged. A majority serves it again, and the member can be replaced.
on h2 "head -c 65536 /dev/urandom >$aside/member/snap/db"
windlass etcd restore --undo --name karmada "${three[@]}"
exits 0
says 'the old data is served again, but not all is well: .*Run windlass etcd check'
[ "$(etcdctl get later --print-value-only)" = 1 ] || broken "the old data is not back"
# The run was killed when one host had recorded that the restore was undone.
for h in h2 h3; do on $h 'sed -i "s/\"undone\"/\"undoing\"/" /var/lib/etcd/data.restore.json'; done
members h1 h2 h3
[ "$code" != 0 ] || broken "an apply ran before the undoing was complete"
windlass etcd restore --undo --name karmada "${three[@]}"
exits 0
for h in h1 h2 h3; do on $h grep -q '"undone"' /var/lib/etcd/data.restore.json || broken "the undoing is not recorded on $h"; done
windlass etcd replace-member h2 --yes "${three[@]}"
exits 0
are_members h1 h2 h3
[ "$(etcdctl get later --print-value-only)" = 1 ] || broken "the replacement lost data"

# An etcd of others on a host of the inventory is not stopped.
on h4 'mkdir -p /var/lib/etcd/data/member'
etcd_members remove-member h1,h2,h3,h4 h4 --yes
exits 2
says 'the etcd on h4 is not of the cluster etcd of this inventory'
on h4 'test -d /var/lib/etcd/data/member' || broken "data of others was moved away"

# A stopped member with the data of another cluster is not started.
on h3 'systemctl stop etcd && cp -p /var/lib/etcd/data.cluster.json /root/marker && sed -i "s/\"token\": \"/\"token\": \"x/" /var/lib/etcd/data.cluster.json'
windlass etcd recover --yes "${three[@]}"
exits 0
[ "$(on h3 'systemctl is-active etcd || true')" = inactive ] || broken "a member of another cluster was started"
on h3 'cp -p /root/marker /var/lib/etcd/data.cluster.json'
windlass etcd recover --yes "${three[@]}"
exits 0
are_members h1 h2 h3

# h4, a host of the control plane, was down while the restore was released.
printf '[karmada_control_plane]\n%s\n' "$(grep '^h4 ' "$inventory")" >>"$(inventory_of h1 h2 h3)"
on h4 'mkdir -p /etc/windlass/karmada && printf "restore 20200101T000000Z-00000000\nwindlass etcd restore --release starts the controllers again\n" >/etc/windlass/karmada/held'
printf -- '- hosts: karmada_control_plane\n  gather_facts: false\n  tasks:\n    - import_role: {name: karmada_settings, tasks_from: refuse_held}\n' >"$scratch/held.yml"
ANSIBLE_ROLES_PATH=$ROOT/roles windlass playbook "${three[@]:0:2}" "$scratch/held.yml"
exits 2
says 'held since etcd was restored \(/etc/windlass/karmada/held on h4, by the restore 20200101T000000Z-00000000\)'
windlass etcd restore --undo --name karmada "${three[@]}"
exits 2
says 'The controllers on h4 are still held: windlass etcd restore --release starts them'
windlass etcd restore --release --name karmada "${three[@]}"
exits 0
on h4 'test ! -e /etc/windlass/karmada/held' || broken "h4 is still held"
windlass etcd restore --release --name karmada "${three[@]}"
exits 2
says 'there is no restore of etcd that was not released'
