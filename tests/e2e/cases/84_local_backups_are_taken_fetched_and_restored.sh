# shellcheck shell=bash
# Takes its turn: every third day.
# Local backups: the hosts' timers take them, a failure is seen, the newest one is fetched without a cluster that works, and restored.
fresh
minutes=(-e etcd_local_backup_minutes=1 -e etcd_local_backup_keep=2)
etcd_playbook "${minutes[@]}"
exits 0
mapfile -t deployment < <(apply_arguments)
deployment+=("${minutes[@]}" -e etcd_settle_seconds=1)
backups=$scratch/backups
etcdctl put e2e "in the backup"

# copies HOST: the local backups there.
copies() { on "$1" 'find /var/backups/etcd/local -name "*.db"' | sort; }
last_try() { on "$1" cat /var/backups/etcd/local/last-try.json; }
# take HOST...: their services take one now, at the same time.
take() {
  local h runs=()
  for h in "$@"; do
    on "$h" timeout 120 systemctl start etcd-backup &
    runs+=($!)
  done
  for h in "${runs[@]}"; do wait "$h" || code=1; done
}

# The timers are staggered. That of h2 is not started by anybody.
for h in h1 h2 h3; do [ "$(on $h systemctl is-enabled etcd-backup.timer)" = enabled ] || broken "the timer of $h is not enabled"; done
for _ in $(seq 45); do
  found=$(copies h2)
  [ -z "$found" ] || break
  sleep 1
done
for h in h1 h2; do [ -n "$(copies $h)" ] || broken "the timer of $h took no backup"; done
found=$(copies h3)
[ -z "$found" ] || broken "the timers run at the same time"
[ -n "$(on h2 systemctl show -p LastTriggerUSec --value etcd-backup.timer)" ] || broken "the timer of h2 did not start it"
[ "$(on h2 'find /var/backups/etcd/local -printf "%y%m " | tr " " "\n" | sort -u | tr "\n" " "')" = "d700 f600 " ] || broken "a local backup is open"
code=0
take h3
exits 0
last_try h3 | matches '"result":"ok"' || broken "the service of h3 took no backup"
windlass status -o json "${deployment[@]}"
exits 0
says '"interval_minutes": 1'
says '"backup_loss_window": [{]'
says '"age_seconds": [0-9]+'
windlass etcd check "${deployment[@]}"
exits 0
says '^backup +ok +every 1 min; '

# A disk that gets too full, and a member that is down: the units fail, and status shows why. What was there stays.
kept=$(copies h3)
hosts shrink h2 /var/backups/etcd/local 5m
on h2 'head -c 4500000 /dev/zero >/var/backups/etcd/local/other'
on h3 systemctl stop etcd
code=0
take h2 h3
exits 1
[ "$(on h2 'systemctl is-failed etcd-backup')" = failed ] || broken "the unit of h2 did not fail"
found=$(copies h2)
[ -z "$found" ] || broken "there is a backup on the full disk"
[ "$(copies h3)" = "$kept" ] || broken "a try that failed changed the backups of h3"
found=$(on h3 'find /var/backups/etcd/local -name ".new*" -o -name "*.new"')
[ -z "$found" ] || broken "something is left of a try that failed"
windlass status "${deployment[@]}"
exits 2
says '^etcd +h1 +[0-9]+ .* yes +[0-9]+$'
says '^etcd +h2 +none +no$'
says '^if the data of all members is lost: the writes of [0-9]+ (s|min).* would be lost now; a backup is due every 1 min$'
says '^unhealthy: etcd on h2: the last local backup failed 0 min ago: /var/backups/etcd/local has [0-9]+ KiB free and needs [0-9]+'
says '^unhealthy: etcd on h3: the last local backup failed 0 min ago: the member does not answer at https://127.0.0.1:2379$'
on h3 systemctl start etcd
hosts unmount h2 /var/backups/etcd/local
code=0
take h2 h3
exits 0
# One that is too old.
# shellcheck disable=SC2016  # for the shell of the host
on h2 'systemctl stop etcd-backup.timer; sed -i "s/\"taken\":[0-9]*/\"taken\":$(($(date +%s) - 600))/" /var/backups/etcd/local/*/*.json'
windlass etcd check "${deployment[@]}"
exits 0
says '^backup +warning +h2: the timer of local backups does not run; the newest local backup is 10 min old, and one is due every 1 min'

# The newest two are kept. Only h1 has the newest one of all; it is fetched while no member runs.
for value in one two three; do
  etcdctl put e2e $value
  code=0
  take h1
  exits 0
done
[ "$(copies h1 | wc -l)" = 2 ] || broken "h1 does not keep two backups"
for h in h1 h2 h3; do on $h systemctl stop etcd-backup.timer; done
# Backups of a member without a leader do not replace those that a majority has proved.
copies h1 >"$scratch/proved"
on h2 systemctl stop etcd
on h3 systemctl stop etcd
for n in 1 2 3; do
  sleep 1.1
  code=0
  take h1
  exits 0
done
[ "$(copies h1 | wc -l)" = 4 ] || broken "h1 does not keep two backups of each kind: $(copies h1)"
copies h1 | sort | comm -13 - <(sort "$scratch/proved") >"$scratch/removed"
[ ! -s "$scratch/removed" ] || broken "a proved backup was removed: $(cat "$scratch/removed")"
copies h1 | grep -vxFf "$scratch/proved" | while read -r file; do rm "$state/h1/root${file%.db}".*; done
on h1 systemctl stop etcd
windlass etcd backup --local "$backups" "${deployment[@]}"
exits 0
says 'from the (leader|follower) h1, etcd 3.5.16, revision [0-9]+, '
says 'the hashes of 3 members'
windlass etcd backup --local "$backups" "${deployment[@]}"
exits 0
says '^[^ ]+ \(copied before\)$'
# The same is chosen although a member that stands alone has a newer one, and the clock was ahead when an older one was taken.
# shellcheck disable=SC2016  # for the shell of the host
on h3 'cd /var/backups/etcd/local && mkdir -p bbbb && json=$(ls */*.json | head -n 1) && cp "${json%.json}.db" bbbb/20990101T000000Z-r9999.db &&
  sed "s/\"cluster_id\":\"[0-9a-f]*\"/\"cluster_id\":\"bbbb\"/; s/\"majority\":[0-9]*/\"majority\":1/; s/\"taken\":[0-9]*/\"taken\":$(date +%s)/" "$json" >bbbb/20990101T000000Z-r9999.json'
on h1 'touch -d tomorrow "$(find /var/backups/etcd/local -name "*.json" -path "*-r*" | sort | head -n 1)"'
windlass etcd backup --local "$backups" "${deployment[@]}"
exits 0
says '^[^ ]+ \(copied before\)$'
says 'from the (leader|follower) h1, '
# The cluster of most hosts counts, also if each of the others says that it is whole.
on h3 'sed -i "s/\"majority\":1/\"majority\":2/" /var/backups/etcd/local/bbbb/*.json'
windlass etcd backup --local "$backups" "${deployment[@]}"
exits 0
says 'from the (leader|follower) h1, '
# A member that was made to stand alone keeps the ID of the cluster, and has a higher revision.
# shellcheck disable=SC2016  # for the shell of the host
on h3 'cd /var/backups/etcd/local && id=$(ls -d */ | grep -vx bbbb/ | head -n 1) && id=${id%/} && json=$(ls $id/*.json | head -n 1) &&
  cp "${json%.json}.db" "$id/20990101T000000Z-r9998.db" && sed "s/\"majority\":[0-9]*/\"majority\":1/; s/\"revision\":[0-9]*/\"revision\":9998/" "$json" >"$id/20990101T000000Z-r9998.json"'
windlass etcd backup --local "$backups" "${deployment[@]}"
exits 0
says '^[^ ]+ \(copied before\)$'
on h3 'rm /var/backups/etcd/local/*/20990101T000000Z-r9998.*'
# What describes no backup is passed over, and reported.
on h3 'echo nonsense >/var/backups/etcd/local/bbbb/20990101T000000Z-r9999.json'
windlass etcd backup --local "$backups" "${deployment[@]}"
exits 2
says 'h3: .*r9999.json is damaged: it does not describe a backup'
on h3 rm -r /var/backups/etcd/local/bbbb
windlass etcd backups "$backups"
exits 0
[ "$(grep -c ' yes$' "$output")" = 1 ] || broken "there is not one backup"
on h1 "printf x | dd of=$(copies h1 | tail -1) bs=1 seek=200 conv=notrunc status=none"
windlass etcd backup --local "$scratch/other" "${deployment[@]}"
exits 2
says 'the backup is complete, but h1: .*\.db is damaged'
for h in h1 h2 h3; do
  found=$(on $h 'find /var/backups/etcd/local -name ".fetch-*"')
  [ -z "$found" ] || broken "a link is left on $h"
done

# A backup that is too old is copied, and is no success. So is one of a cluster that runs no more.
for h in h1 h2 h3; do on $h 'sed -i "s/\"taken\":[0-9]*/\"taken\":$(($(date +%s) - 1728000))/" /var/backups/etcd/local/*/*.json'; done
windlass etcd backup --local "$scratch/old" "${deployment[@]}"
exits 2
says 'the backup is complete, but h[123]: it is 28800 min old, and one is due every 1 min: run windlass etcd check'
# There are only those of a member that stood alone.
for h in h1 h2 h3; do on $h 'sed -i "s/\"taken\":[0-9]*/\"taken\":$(date +%s)/; s/\"majority\":[0-9]*/\"majority\":1/" /var/backups/etcd/local/*/*.json'; done
windlass etcd backup --local "$scratch/alone" "${deployment[@]}"
exits 2
says 'the backup is complete, but h[123]: it is of a cluster with 3 members, and the inventory has 3: a member that stood alone may have made it'
for h in h1 h2 h3; do on $h 'sed -i "s/\"majority\":1/\"majority\":2/" /var/backups/etcd/local/*/*.json'; done
for h in h1 h2 h3; do on $h 'cd /var/backups/etcd/local && for id in */; do sed -i "s/\"taken\":[0-9]*/\"taken\":$(date +%s)/; s/\"cluster_id\":\"[0-9a-f]*\"/\"cluster_id\":\"cccc\"/" "$id"*.json; done'; done
for h in h1 h2 h3; do on $h systemctl start --no-block etcd; done
healthy
windlass etcd backup --local "$scratch/replaced" "${deployment[@]}"
exits 2
for h in h1 h2 h3; do on $h systemctl stop etcd; done
says 'the backup is complete, but h[123]: it is of the cluster cccc, and the members that run are of [0-9a-f]+: a cluster that was removed or replaced made it'

# All data is lost. What is restored is the newest backup.
for h in h1 h2 h3; do on $h rm -rf /var/lib/etcd/data; done
windlass etcd restore "$(find "$backups" -mindepth 1 -maxdepth 1 -name '*-r*')" --name karmada "${deployment[@]}"
exits 0
[ "$(etcdctl get e2e --print-value-only)" = three ] || broken "the restored cluster has not the newest value"
windlass etcd restore --release --name karmada "${deployment[@]}"
exits 0
# The backups of the earlier cluster do not count.
before=$(copies h1 | wc -l)
code=0
take h1
exits 0
[ "$(copies h1 | wc -l)" = $((before + 1)) ] || broken "a backup of the restored cluster replaced one of the lost cluster"

# Off on h3: no timer, service or script is left, and the backups stay. A reset leaves them, too.
sed 's/^h[12] .*/& etcd_local_backup_minutes=1/' "$inventory" >"$state/some.ini"
for _ in 1 2; do
  etcd_inventory=$state/some.ini etcd_playbook
  exits 0
done
nothing_changed
has_timer() { [ -n "$(on "$1" 'systemctl list-unit-files "etcd-backup*" --no-legend; ls /opt/windlass/etcd/local-backup 2>/dev/null || :')" ]; }
has_timer h2 || broken "the timer of h2 is gone"
! has_timer h3 || broken "something is left on h3"
[ -n "$(copies h3)" ] || broken "the backups of h3 are gone"
windlass playbook -i "$inventory" -e confirm_cluster_name=etcd "$ROOT/playbooks/etcd-reset.yml"
exits 0
says '[0-9]+ local backups of h2 are kept in /var/backups/etcd/local'
! has_timer h2 || broken "the timer is left on h2"
[ -n "$(copies h2)" ] || broken "a reset removed the backups of h2"
