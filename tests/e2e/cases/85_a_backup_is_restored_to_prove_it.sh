# shellcheck shell=bash
# Takes its turn: a backup is restored into a separate etcd, whose data is compared with what the members had.
a_cluster
deployment=(-i "$inventory" --playbooks "$ROOT/playbooks")
backups=$scratch/backups
for n in 1 2 3 4 5; do etcdctl put "e2e/$n" "the value $n"; done
etcdctl del e2e/1
etcdctl put e2e/2 'the value two'
# nothing_left: neither files nor processes of a rehearsal are on a host.
nothing_left() {
  local h
  for h in h1 h2 h3; do
    found=$(on $h 'find /var/backups/etcd -name ".rehearsal-*" 2>/dev/null; pgrep -f "[-]-name rehearsal" || true')
    [ -z "$found" ] || return 1
  done
}
windlass etcd backup "$backups" "${deployment[@]}" --rehearse
exits 0
says 'restored: [0-9]+ keys, in [0-9]+ s, with the hash of the members'
nothing_left || broken "something of the rehearsal is left: $found"
good=$(find "$backups" -mindepth 1 -maxdepth 1)
grep -q '"rehearsal"' "$good/manifest.json" || broken "the manifest says nothing of it"
windlass etcd rehearse "$good" "${deployment[@]}"
exits 0
says 'was restored on h[123] with etcd 3[.]5[.]16 in [0-9]+ s'
says 'the data is what the members had'
nothing_left || broken "something of the rehearsal is left: $found"
healthy

# forged NAME EDIT: a copy of the backup whose snapshot was changed, and whose digests all fit.
forged() {
  cp -r "$good" "$backups/$1"
  zstd -q -d -f "$good/snapshot.db.zst" -o "$scratch/snapshot.db"
  python3 - "$backups/$1" "$scratch/snapshot.db" "$2" <<'END'
import hashlib, json, subprocess, sys
directory, path, edit = sys.argv[1:]
data = open(path, "rb").read()[:-32]
if edit == "value":
    assert b"the value 5" in data
    data = data.replace(b"the value 5", b"the value 6")
else:
    data = b"\0" * len(data)
data += hashlib.sha256(data).digest()
open(path, "wb").write(data)
subprocess.run(["zstd", "-q", "-f", path, "-o", f"{directory}/snapshot.db.zst"], check=True)
packed = open(f"{directory}/snapshot.db.zst", "rb").read()
manifest = json.load(open(f"{directory}/manifest.json"))
manifest.update(sha256=hashlib.sha256(data).hexdigest(), size=len(data))
manifest.update(compressed_sha256=hashlib.sha256(packed).hexdigest(), compressed_size=len(packed))
json.dump(manifest, open(f"{directory}/manifest.json", "w"))
END
}
# One other value: only the comparison with the members' hash can tell.
forged 20200101T000000Z-r7 value
windlass etcd rehearse "$backups/20200101T000000Z-r7" "${deployment[@]}"
exits 2
says 'the data is NOT what the members had'
# No database at all.
forged 20200101T000000Z-r8 nothing
windlass etcd rehearse "$backups/20200101T000000Z-r8" "${deployment[@]}"
exits 1
says 'the backup 20200101T000000Z-r8 was not restored'
says 'the snapshot cannot be restored|etcd does not start'
nothing_left || broken "something of the rehearsal is left: $found"
# A host without room, and a run that is killed.
on h1 'mkdir -p /var/backups/etcd && mount -t tmpfs -o size=40m,mode=0700 none /var/backups/etcd'
on h2 'mkdir -p /var/backups/etcd && mount -t tmpfs -o size=40m,mode=0700 none /var/backups/etcd'
on h3 'mkdir -p /var/backups/etcd && mount -t tmpfs -o size=40m,mode=0700 none /var/backups/etcd'
windlass etcd rehearse "$good" "${deployment[@]}"
exits 1
says 'KiB free, and a rehearsal needs'
windlass etcd backup "$scratch/none" "${deployment[@]}" --rehearse
exits 1
says 'KiB free, and a rehearsal needs'
found=$(find "$scratch" -path '*/none/*' -name manifest.json)
[ -z "$found" ] || broken "what was not restored is a backup"
nothing_left || broken "something of the rehearsal is left: $found"
for h in h1 h2 h3; do on $h umount /var/backups/etcd; done
"$WINDLASS" etcd rehearse "$good" "${deployment[@]}" >"$output" 2>&1 </dev/null &
run=$!
until [ -n "$(for h in h1 h2 h3; do on $h 'pgrep -f "[-]-name rehearsal" || true'; done)" ]; do
  kill -0 $run 2>/dev/null || { cat "$output"; broken "no rehearsal was seen"; }
done
kill -9 $run
wait $run || true
for _ in $(seq 90); do ! nothing_left || break; sleep 1; done
nothing_left || broken "something of a run that was killed is left: $found"
healthy

# The snapshot of a full database has its alarm, and is a good backup.
"$ROOT/tests/e2e/history.py" ask "$state/credentials/etcd" "$(sed -n 's/^h1 ansible_host=\([^ ]*\).*/\1/p' "$inventory")" /v3/maintenance/alarm \
  '{"action": "ACTIVATE", "memberID": "0", "alarm": "NOSPACE"}'
etcdctl alarm list | grep NOSPACE || broken "there is no alarm"
windlass etcd backup "$scratch/full" "${deployment[@]}" --rehearse
exits 0
says 'restored: '
etcdctl alarm disarm
healthy
