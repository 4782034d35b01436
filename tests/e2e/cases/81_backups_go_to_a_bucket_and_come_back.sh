# shellcheck shell=bash
# Takes its turn: every third day.
# Backups in a bucket of an S3 service, and in a directory at the same time: written whole, listed, kept, and restored from the bucket alone.
. "$ROOT/tests/e2e/bucket.sh"
a_cluster_and_a_bucket
nothing_left() {
  local found
  found=$(find "$XDG_CACHE_HOME" -type f)
  [ -z "$found" ] || broken "files are left: $found"
  for h in h1 h2 h3; do
    found=$(on $h 'test ! -d /var/backups/etcd || find /var/backups/etcd -maxdepth 1 -type f')
    [ -z "$found" ] || broken "a snapshot is left on $h"
  done
}

# A caller who may not write to the bucket gets to know it before a host is asked for a snapshot.
AWS_SECRET_ACCESS_KEY=wrong windlass etcd backup $place "${deployment[@]}"
exits 1
says 'cannot list s3://backups/karmada/prod/: the server responded 403 .*SignatureDoesNotMatch'
says 'hint: check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY'
AWS_ENDPOINT_URL_S3='' AWS_REGION='' windlass etcd backup $place "${deployment[@]}"
exits 1
says 'hint: set AWS_REGION'
windlass etcd backups $place
exits 1
says "there is no backup in $place"

etcdctl put e2e "in the bucket"
windlass etcd backup $place "$scratch/backups" --keep 2 "${deployment[@]}"
exits 0
says "^$place/[0-9TZ]+-r[0-9]+-[0-9a-f]{8}$"
says "^$scratch/backups/[0-9TZ]+-r[0-9]+$"
first=$(sed -nE "s#^($place/.*)#\1#p" "$output")
windlass etcd backups "$scratch/backups"
exits 0
nothing_left
windlass etcd backups $place
exits 0
says '^[0-9TZ]+-r[0-9]+-[0-9a-f]{8} .* yes$'
windlass etcd backups -o json $place
exits 0
says '"verified": true'

# One place that fails does not keep the others from having it, and is no success.
s3_fault PUT manifest.json 503 100
etcdctl put e2e two
windlass etcd backup $place "$scratch/backups" "${deployment[@]}"
exits 2
says "^$scratch/backups/[0-9TZ]+-r[0-9]+$"
says "the backup is complete, but $place: cannot write $place/[0-9TZa-fr-]+/manifest.json: the server responded 503 .*after 5 attempts"
windlass etcd backups $place
exits 0
[ "$(grep -c ' yes$' "$output")" = 1 ] || broken "there is not one backup"
s3_no_faults
# What arrived differs from what was sent: it is no backup.
s3_fault GET snapshot.db.zst damaged 1
windlass etcd backup $place "${deployment[@]}"
exits 1
says "the backup in $place/[0-9TZa-fr-]+ is not what was sent: damaged: its digest differs from the manifest's; it does not count"
windlass etcd backups $place
[ "$(grep -c ' yes$' "$output")" = 1 ] || broken "a damaged backup is listed"
nothing_left

# The newest two are kept, also when the answers of the service get lost.
for value in three four; do
  etcdctl put e2e $value
  s3_fault PUT snapshot.db.zst cut 1
  windlass etcd backup $place --keep 2 "${deployment[@]}"
  exits 0
done
says "removed ${first##*/}\$"
windlass etcd backups $place
exits 0
[ "$(grep -c ' yes$' "$output")" = 2 ] || broken "two backups are not kept"
found=$(s3_requests | grep -c "DELETE .*${first##*/}/")
[ "$found" = 2 ] || broken "the removed backup has $found removed objects"
# A service that does not answer keeps nobody from stopping.
s3_fault PUT snapshot.db.zst hang 1
before=$(s3_requests | grep -c 'PUT .*/snapshot.db.zst')
"$WINDLASS" etcd backup $place "${deployment[@]}" >"$scratch/other" 2>&1 &
other=$!
until [ "$(s3_requests | grep -c 'PUT .*/snapshot.db.zst')" -gt "$before" ]; do sleep 0.2; done
kill $other
for _ in $(seq 300); do
  kill -0 $other 2>/dev/null || break
  sleep 0.2
done
! kill -0 $other 2>/dev/null || broken "a backup that hangs is not stopped"
! wait $other || broken "a backup that was stopped is a success"
windlass etcd backups $place
exits 0
[ "$(grep -c ' yes$' "$output")" = 2 ] || broken "a backup that was stopped is listed"
# A word with a colon is no directory.
windlass etcd backup gs://backups/karmada "${deployment[@]}"
exits 1
says 'hint: write s3://BUCKET/PREFIX, ssh://USER@ADDRESS/DIRECTORY, or ./gs://backups/karmada for a directory'
# Two at the same time do not touch each other, whatever the service makes of their requests.
s3_fault PUT snapshot.db.zst 503 2
"$WINDLASS" etcd backup $place "${deployment[@]}" >"$scratch/other" 2>&1 &
other=$!
windlass etcd backup $place "${deployment[@]}"
exits 0
wait $other || { cat "$scratch/other"; broken "the other backup failed"; }
windlass etcd backups $place
exits 0
[ "$(grep -c ' yes$' "$output")" = 4 ] || broken "two backups at the same time are not two"
newest=$place/$(sed -nE 's/^([0-9TZ]+-r[0-9a-f-]+) .*/\1/p' "$output" | head -n 1)
# Objects of others below the same prefix are none of ours.
windlass etcd backups s3://backups/karmada
exits 1
says 'there is no backup in s3://backups/karmada$'

# All data is lost. What is restored is the newest backup, with nothing but the bucket.
etcdctl put e2e "not in the bucket"
rm -rf "$scratch/backups"
for h in h1 h2 h3; do on $h systemctl stop etcd; done
windlass etcd recover --check --backups $place "${deployment[@]}"
exits 2
says "windlass etcd restore $newest "
for h in h1 h2 h3; do on $h rm -rf /var/lib/etcd/data; done
s3_fault GET "${newest##*/}/snapshot.db.zst" damaged 1
windlass etcd restore "$newest" --name karmada "${deployment[@]}"
exits 1
says "the backup $newest cannot be used: damaged: its digest differs from the manifest's; nothing was changed"
windlass etcd restore "$place/20200101T000000Z-r1" --name karmada "${deployment[@]}"
exits 1
says 'cannot read .*manifest.json: the server responded 404 NoSuchKey'
windlass etcd restore "$newest" --name karmada "${deployment[@]}"
exits 0
[ "$(etcdctl get e2e --print-value-only)" = four ] || broken "the restored cluster has not the newest value of the bucket"
nothing_left
windlass etcd restore --release --name karmada "${deployment[@]}"
exits 0
# A new cluster, beside the backups of the one before.
windlass etcd backup $place "${deployment[@]}"
exits 0
etcdctl put e2e five
windlass etcd backup $place --keep-daily 1 --keep-monthly 12 "${deployment[@]}"
exits 0
says '^  removed [0-9TZ]+-r[0-9a-f-]+$'
windlass etcd backups $place
exits 0
[ "$(grep -c ' yes$' "$output")" = 5 ] || broken "backups of the cluster before the restore are removed"
in_no_record "$AWS_SECRET_ACCESS_KEY"
healthy
