# Takes its turn: every third day.
# shellcheck shell=bash
# A backup is restored onto all members, with what was written since being lost, and only that; the way back works.
. "$ROOT/tests/e2e/etcd-lib.sh"
fresh_five
members h1 h2 h3
exits 0
are_members h1 h2 h3
# Earlier versions gave the directory of the data directory to the user of etcd.
on h2 'chown etcd:etcd /var/lib/etcd; chmod 0700 /var/lib/etcd'
members h1 h2 h3
exits 0
for h in h1 h2; do [ "$(on $h 'stat -c "%U %a" /var/lib/etcd')" = "root 755" ] || broken "root does not own the directory of the data directory of $h"; done
mapfile -t three < <(printf '%s\n' -i "$(inventory_of h1 h2 h3)" -e "etcd_bundle=$ROOT/target/etcd/3.5" -e etcd_settle_seconds=1 --playbooks "$ROOT/playbooks")
backups=$scratch/backups
restore() { windlass etcd restore "$@" "${three[@]}"; }
# What the members have: the keys of this test, and where the old data is.
keys() { etcdctl get key/ --prefix -w fields | grep -E '^"(Key|Value)"' | sort; }
asides() { local h; for h in h1 h2 h3; do on $h 'for d in /var/lib/etcd/data.before-restore-*/member; do [ ! -d "$d" ] || echo "$d"; done' || return; done; }
hashes() { etcdctl endpoint hashkv -w json | grep -o '"hash":[0-9]*' | sort -u | wc -l; }
token() { cat "$state/credentials/etcd/token"; }
are_restored() {
  are_members h1 h2 h3
  keys >"$scratch/now"
  diff "$1" "$scratch/now" || broken "the keys are not those of $1"
  [ "$(hashes)" = 1 ] || broken "the members have different data"
}

for n in $(seq 20); do etcdctl put "key/$n" "before $n" >/dev/null; done
keys >"$scratch/then"
windlass etcd backup "$backups" "${three[@]}"
exits 0
backup=$(find "$backups" -mindepth 1 -maxdepth 1 -name '*-r*')
old_token=$(token)
etcdctl put key/new later
etcdctl put key/1 changed
etcdctl del key/2
etcdctl del key/3
keys >"$scratch/later"

# The plan says what is lost, and changes nothing.
restore "$backup" --check
exits 0
says '1 created, 1 changed, 2 deleted \(such as key/1, key/new\)'
says 'count as compacted'
[ "$(token)" = "$old_token" ] || broken "a plan changed the token"
for h in h1 h2 h3; do on $h 'test ! -e /var/lib/etcd/data.restore.json'; done
# Without the name, or with a wrong one, nothing happens.
restore "$backup"
exits 1
says 'pass --name karmada'
restore "$backup" --name other
exits 1
says 'windlass changed nothing'
# A damaged backup, one of another deployment, and a host that does not answer are refused before anything is touched.
cp -r "$backup" "$backups/damaged"
printf x | dd of="$backups/damaged/snapshot.db.zst" bs=1 seek=200 conv=notrunc status=none
restore "$backups/damaged" --name karmada
exits 1
says 'damaged cannot be used: '
cp -r "$backup" "$backups/foreign"
sed -i 's/"deployment": "karmada"/"deployment": "other"/' "$backups/foreign/manifest.json"
restore "$backups/foreign" --name karmada
exits 1
says 'is of etcd \(other\)'
cp -r "$backup" "$backups/newer"
sed -i 's/"etcd_version": "3.5/"etcd_version": "3.6/' "$backups/newer/manifest.json"
restore "$backups/newer" --name karmada
exits 2
says 'the backup is of etcd 3.6.16, and 3.5.16 is installed, which is older'
hosts kill h3
sleep 2
restore "$backup" --name karmada
exits 4
hosts start h3
well
etcd_members check h1,h2 >/dev/null
windlass etcd restore "$backup" --name karmada -i "$(inventory_of h1)" -e "etcd_bundle=$ROOT/target/etcd/3.5" --playbooks "$ROOT/playbooks"
exits 2
says 'has members that the inventory lacks: h2, h3'
windlass etcd restore "$backup" --name karmada --lost h2 --lost h3 -i "$(inventory_of h1)" -e "etcd_bundle=$ROOT/target/etcd/3.5" --playbooks "$ROOT/playbooks"
exits 2
says 'h2, h3 answer, so they are not lost'
inventory_of h1 h2 h3
keys >"$scratch/now"
diff "$scratch/later" "$scratch/now" || broken "something that was refused changed the keys"
found=$(asides)
[ -z "$found" ] || broken "data was moved away"
found=$(find "$backups" -name '.partial*')
[ -z "$found" ] || broken "an unpacked snapshot is left"

# The restore: exactly the backup's keys, at a higher revision, under a new token. The old data is there.
revision() { etcdctl get key/1 -w json | grep -o '"revision":[0-9]*' | cut -d: -f2; }
before=$(revision)
restore "$backup" --name karmada
exits 0
are_restored "$scratch/then"
[ "$(revision)" -gt $((before + 900000000)) ] || broken "the revision is not higher"
found=$(token)
[ "$found" != "$old_token" ] || broken "the token is the old one"
[ "$(asides | wc -l)" = 3 ] || broken "the old data is not on three hosts"
for h in h1 h2 h3; do
  [ "$(on $h 'stat -c "%U %a" /var/lib/etcd/data /var/lib/etcd/data/member/snap/db' | tr '\n' ' ')" = "etcd 700 etcd 600 " ] || broken "the data on $h has another owner or mode"
  [ "$(on $h 'systemctl is-enabled etcd')" = enabled ] || broken "etcd on $h is not enabled"
done
etcdctl put key/after restored
[ "$(etcdctl get key/after --print-value-only)" = restored ] || broken "no write works"
members h1 h2 h3
exits 0
says 'Nothing to do'
restore "$backup" --name karmada
exits 2
says 'is not released yet.*windlass etcd restore --undo'

# The way back: the later data is there again, under the old token.
restore --undo --check
exits 0
says 'All that was written since the restore is lost'
# A link of the user of etcd leads root nowhere.
link=$(on h1 'echo /var/lib/etcd/data.before-restore-*' | sed 's/before/undone/')
on h1 "ln -s /etc/profile.d $link && chown -h etcd: $link"
restore --undo --name karmada
exits 2
says "$link is not a directory of root"
on h1 "test ! -e /etc/profile.d/member && test ! -e /etc/profile.d/complete && rm $link"
restore --undo --name karmada
exits 0
are_restored "$scratch/later"
[ "$(token)" = "$old_token" ] || broken "the token is not the old one"
found=$(asides)
[ -z "$found" ] || broken "old data is still beside the data directory"
for h in h1 h2 h3; do on $h 'test -d /var/lib/etcd/data.undone-restore-*/member' || broken "the restored data of $h was not kept"; done
restore --undo --name karmada
exits 2
says 'there is no restore of etcd that was not released'

# After all data is lost, on all hosts.
for h in h1 h2 h3; do on $h 'systemctl stop etcd; rm -rf /var/lib/etcd/data'; done
restore "$backup" --check
exits 0
says 'No member has a leader'
says 'No data is left on h1, h2, h3'
restore "$backup" --name karmada
exits 0
are_restored "$scratch/then"
restore --undo --name karmada
exits 2
says 'does not have its data from before the restore'
restore --release --name karmada
exits 0
members h1 h2 h3
exits 0
says 'Nothing to do'

# Onto one host instead of three. The machines of the others are gone.
hosts kill h2
hosts kill h3
sleep 2
mapfile -t three < <(printf '%s\n' -i "$(inventory_of h1)" -e "etcd_bundle=$ROOT/target/etcd/3.5" -e etcd_settle_seconds=1 --playbooks "$ROOT/playbooks")
restore "$backup" --name karmada --lost h2 --lost h3
exits 0
are_members h1
keys >"$scratch/now"
diff "$scratch/then" "$scratch/now" || broken "the keys are not those of the backup"
restore --undo --check
exits 2
says 'a majority of them is not in the inventory'
restore --release --name karmada
exits 0
members h1 h4 h5
exits 0
are_members h1 h4 h5
# The old machines start again: the restored cluster rejects them.
hosts start h2
hosts start h3
sleep 8
are_members h1 h4 h5
keys >"$scratch/now"
diff "$scratch/then" "$scratch/now" || broken "old members changed the keys"
