# shellcheck shell=bash
# Takes its turn: every third day.
# A backup that is encrypted, with the credentials in it: with the secret key, and nothing else, a new controller restores the cluster on
# empty hosts. Without the key, nobody can; the program age can decrypt it, too.
. "$ROOT/tests/e2e/bucket.sh"
a_cluster_and_a_bucket
for name in owner other; do
  age-keygen -o "$scratch/$name.key" 2>/dev/null
  age-keygen -y "$scratch/$name.key" >"$scratch/$name.pub"
done
owner=$(cat "$scratch/owner.pub")

# What cannot be kept as it was asked for is refused before a host is asked for a snapshot.
windlass etcd backup "$scratch/backups" --credentials "${deployment[@]}"
exits 1
says 'credentials are kept in encrypted backups only'
says 'hint: --recipient AGE1'
windlass etcd backup "$scratch/backups" --recipient "$(grep SECRET "$scratch/owner.key")" "${deployment[@]}"
exits 1
says '^error: --recipient: it is a secret key; its public key is needed, which age-keygen -y prints'
! grep -q "$(grep SECRET "$scratch/owner.key")" "$output" || broken "the secret key is in the output"
windlass etcd backup "$scratch/backups" --recipients-file "$scratch/owner.key" "${deployment[@]}"
exits 1
says 'owner.key: line 3: it is a secret key'
! grep -q "$(grep SECRET "$scratch/owner.key")" "$output" || broken "the secret key is in the output"
# A restore needs all of them.
mv "$state/credentials/etcd/ca.key" "$scratch/ca.key"
windlass etcd backup "$scratch/backups" --credentials --recipient "$owner" "${deployment[@]}"
exits 1
says "the backup cannot hold the credentials of the deployment: $state/credentials/etcd/ca.key does not exist"
mv "$scratch/ca.key" "$state/credentials/etcd/ca.key"
[ ! -e "$scratch/backups" ] || broken "a refused backup made the directory"

etcdctl put e2e "only the owner may read this"
windlass etcd backup $place "$scratch/backups" --credentials --recipients-file "$scratch/owner.pub" "${deployment[@]}"
exits 0
says "encrypted: age, to $owner"
says 'with [0-9]+ files of credentials'
backup=$(sed -nE "s#^($scratch/backups/.*)#\1#p" "$output")
in_bucket=$(sed -nE "s#^($place/.*)#\1#p" "$output")
[ "$(find "$backup" -mindepth 1 -printf '%f\n' | sort | xargs)" = "credentials.tar.zst.age manifest.json snapshot.db.zst.age" ] ||
  broken "the backup has other files: $(ls -A "$backup")"
for file in "$backup"/*.age; do
  [ "$(head -n 1 "$file" | tr -d '\0')" = age-encryption.org/v1 ] || broken "$file is not encrypted"
done
# Without windlass.
age --decrypt --identity "$scratch/owner.key" "$backup/snapshot.db.zst.age" | zstd --decompress --stdout >"$scratch/raw.db"
[ "$(sha256sum <"$scratch/raw.db")" = "$(jq -r .sha256 "$backup/manifest.json")  -" ] || broken "age decrypts something else"
age --decrypt --identity "$scratch/owner.key" "$backup/credentials.tar.zst.age" | zstd --decompress --stdout | tar -t >"$scratch/names"
grep -qx etcd/ca.key "$scratch/names" || broken "the credentials have no key of the authority"

# A key instead of the file with it is not repeated.
windlass etcd backups $place --identity "$(grep SECRET "$scratch/owner.key")"
exits 1
says 'that is a secret key itself'
! grep -q "$(grep SECRET "$scratch/owner.key")" "$output" || broken "the secret key is in the output"
for where in $place "$scratch/backups"; do
  windlass etcd backups "$where"
  exits 0
  says ' yes, encrypted$'
  windlass etcd backups "$where" --identity "$scratch/owner.key"
  exits 0
  says ' yes, decrypted$'
  windlass etcd backups "$where" --identity "$scratch/other.key"
  exits 2
  says ' no: none of the identities decrypts it'
done
windlass etcd restore "$backup" --name karmada "${deployment[@]}"
exits 1
says "the backup $backup cannot be used: it is encrypted .*; --identity FILE names the file with a secret key of these; nothing was changed"
windlass etcd restore "$in_bucket" --identity "$scratch/other.key" --name karmada "${deployment[@]}"
exits 1
says "the backup $in_bucket cannot be used: none of the identities decrypts it .*; nothing was changed"
windlass etcd restore "$backup" --identity "$scratch/owner.pub" --name karmada "${deployment[@]}"
exits 1
says 'owner.pub: it is no secret key of age'
found=$(find "$scratch/cache" "$scratch/backups" -name '*.db')
[ -z "$found" ] || broken "a decrypted snapshot is left"

# All hosts and the controller are lost: what is left is the bucket and the key.
etcdctl put e2e "not in the backup"
# The hosts' own files are below the usual cache.
for h in h1 h2 h3; do (unset XDG_CACHE_HOME && hosts reset $h); done
rm -rf "$state/credentials" "$scratch/backups" "$scratch/cache"
windlass etcd credentials "$in_bucket" "$state/credentials" --identity "$scratch/other.key"
exits 1
[ ! -e "$state/credentials" ] || broken "credentials are written without the key"
windlass etcd credentials "$in_bucket" "$state/credentials" --identity "$scratch/owner.key"
exits 0
says "^$state/credentials/etcd/ca.key$"
[ "$(stat -c %a "$state/credentials" "$state/credentials/etcd/ca.key" | xargs)" = "700 600" ] || broken "others can read the credentials"
windlass etcd credentials "$in_bucket" "$state/credentials" --identity "$scratch/owner.key"
exits 1
says 'is there, and is not an empty directory; nothing was written'
etcd_playbook -e etcd_settle_seconds=1
exits 0
windlass etcd restore "$in_bucket" --identity "$scratch/owner.key" --name karmada "${deployment[@]}"
exits 0
[ "$(etcdctl get e2e --print-value-only)" = "only the owner may read this" ] || broken "the restored cluster has not what the backup has"
windlass etcd restore --release --name karmada "${deployment[@]}"
exits 0
healthy
found=$(find "$scratch/cache" -type f)
[ -z "$found" ] || broken "files are left"
in_no_record "$(grep SECRET "$scratch/owner.key")"
