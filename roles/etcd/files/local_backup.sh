#!/bin/sh
# Managed by windlass: roles/etcd. Takes a snapshot of the etcd member of this host, proves it, keeps it as a local backup, and removes
# the oldest ones. Its systemd service sets the variables and runs it: to take a backup now, start that service.
#
# $BACKUP_DIR has a directory for each cluster, named by its ID, with TIME-rREVISION.db, and TIME-rREVISION.json which describes it and is
# written last: a file without it is no backup. last-try.json has the result of the last try.
set -u
umask 077
export LC_ALL=C
: "${BACKUP_DIR:?}" "${BACKUP_KEEP:?}" "${BACKUP_MEMBER:?}" "${BACKUP_PROGRAMS:?}" "${BACKUP_URL:?}"
tried=$(date +%s)
at=
revision=0

ctl() { "$BACKUP_PROGRAMS/etcdctl" --endpoints "$BACKUP_URL" "$@"; }
# value TEXT NAME: a string or a number of JSON on one line.
value() { printf '%s\n' "$1" | sed -n "s/.*\"$2\":\"\\{0,1\\}\\([^\",}]*\\).*/\\1/p" | head -n 1; }
# write_whole FILE: writes its input so that the file is there as a whole, also after a power failure, or not at all.
write_whole() { cat >"$1.new" && sync "$1.new" && mv -f "$1.new" "$1" && sync "$(dirname "$1")"; }
# record RESULT WHY
record() {
  why=$(printf %s "$2" | tr -c 'A-Za-z0-9 .,:;/_()=%+-' ' ' | cut -c 1-300)
  printf '{"layout":1,"tried":%s,"result":"%s","revision":%s,"why":"%s"}\n' "$tried" "$1" "$revision" "$why" | write_whole "$BACKUP_DIR/last-try.json"
}
fail() {
  [ -z "$at" ] || rm -f "$at"/.new-*
  echo "no local backup of etcd: $1" >&2
  record failed "$1" || echo "$BACKUP_DIR/last-try.json cannot be written" >&2
  exit 1
}

mkdir -p "$BACKUP_DIR" || fail "$BACKUP_DIR cannot be made"
exec 9>"$BACKUP_DIR/.lock" || fail "$BACKUP_DIR cannot be written to"
flock -n 9 || { echo 'another local backup is running' >&2; exit 1; }

# A member that restarts answers a few seconds later.
for try in 1 2 3; do
  status=$(ctl --command-timeout 5s endpoint status -w json 2>/dev/null) && break
  [ "$try" = 3 ] || sleep 2
done
cluster=$(value "$status" cluster_id)
size=$(value "$status" dbSize)
version=$(value "$status" version)
case $cluster:$size in :* | *: | *[!0-9:]*) fail "the member does not answer at $BACKUP_URL" ;; esac
cluster=$(printf %x "$cluster") || fail "the ID of the cluster cannot be read"
# A member that answers this has every write that was acknowledged until then. Without a leader, none does; a backup is worth taking
# nevertheless.
taken=$(date +%s)
has_leader=false
is_leader=false
if ctl --command-timeout 10s get windlass/local-backup >/dev/null 2>&1; then
  has_leader=true
  [ "$(value "$status" leader)" != "$(value "$status" member_id)" ] || is_leader=true
  alarms=$(ctl --command-timeout 10s alarm list 2>/dev/null) || fail "the member does not list its alarms"
  case $alarms in *CORRUPT*) fail "etcd reports the alarm CORRUPT: compare the members with windlass etcd verify" ;; esac
fi

at=$BACKUP_DIR/$cluster
mkdir -p "$at" || fail "$at cannot be made"
# What a try that was killed has left, and links of windlass that are an hour old: their other times are those of the backup.
rm -f "$at"/.new-* "$at"/*.new "$BACKUP_DIR"/*.new
find "$at" -name '.fetch-*' -cmin +60 -exec rm -f {} +
for file in "$at"/*.db; do
  [ ! -e "$file" ] || [ -e "${file%.db}.json" ] || rm -f "$file"
done

# A twentieth of the file system stays free: other programs need it.
df -P -k "$at" >"$at/.new-df" || fail "the free space of $at cannot be read"
read -r total free <<END
$(tail -n 1 "$at/.new-df" | sed 's/  */ /g' | cut -d ' ' -f 2,4)
END
needed=$((size / 1024 + total / 20 + 1024))
[ "$free" -gt "$needed" ] || fail "$BACKUP_DIR has $free KiB free and needs $needed: free some space, or keep fewer backups"

new=$at/.new-snapshot
said=$(ctl --command-timeout 600s snapshot save "$new" 2>&1 >/dev/null) || fail "etcdctl snapshot save: $(printf %s "$said" | tail -n 1)"
sync "$new" || fail "$new cannot be written"
# etcd appends the SHA-256 of the database to it. etcdutl snapshot status does not compare it.
size=$(wc -c <"$new")
is=$(head -c $((size - 32)) "$new" | sha256sum | cut -d ' ' -f 1)
says=$(tail -c 32 "$new" | od -An -v -tx1 | tr -d ' \n')
[ "$is" = "$says" ] || fail "the snapshot is damaged: its digest is $is, and it says $says"
tool=$BACKUP_PROGRAMS/etcdutl
[ -x "$tool" ] || tool=$BACKUP_PROGRAMS/etcdctl
read_back=$("$tool" snapshot status "$new" --write-out json 2>/dev/null) || fail "the snapshot cannot be read"
revision=$(value "$read_back" revision)
keys=$(value "$read_back" totalKey)
case $revision:$keys in :* | *: | *[!0-9:]*) revision=0; fail "the snapshot cannot be read" ;; esac

# The newest last. Revisions only grow in a cluster; clocks can be wrong.
backups() {
  for file in "$at"/*.json; do
    [ ! -e "$file" ] || [ ! -e "${file%.json}.db" ] || basename "$file" .json
  done | sort -t r -k 2,2n -k 1,1
}
newest=$(backups | tail -n 1)
[ "${newest##*-r}" = "" ] || [ "$revision" -ge "${newest##*-r}" ] || fail "its revision is $revision, and that of $newest is higher: the member has lost data"

# The names and client URLs of the voters: ID, STATE, NAME, PEER-URLS, CLIENT-URLS, IS-LEARNER.
names=
urls=$BACKUP_URL
voters=0
listed=$at/.new-members
ctl --command-timeout 10s member list >"$listed" 2>/dev/null || : >"$listed"
while IFS= read -r line; do
  case $line in *', true') continue ;; esac
  voters=$((voters + 1))
  line=${line#*, *, }
  name=${line%%, *}
  line=${line#*, *, }
  client=${line%%, *}
  client=${client%%,*}
  [ -z "$name" ] || names="$names,\"$name\""
  [ "$name" = "$BACKUP_MEMBER" ] || [ -z "$client" ] || urls=$urls,$client
done <"$listed"

# hashes: HASH COMPACT-REVISION of each member that answers, the own one first. A member that has compacted since then has none, nor has one
# that is a moment behind.
hashes() {
  "$BACKUP_PROGRAMS/etcdctl" --endpoints "$urls" --command-timeout "$((5 + size / 20000000))s" endpoint hashkv --rev "$revision" -w json 2>/dev/null |
    tr '{}' '\n' >"$at/.new-hashes"
  from=
  while IFS= read -r line; do
    case $line in
      *'"Endpoint":'*) from=$(value "$line" Endpoint) ;;
      *'"hash":'*)
        compacted=$(value "$line" compact_revision)
        [ "$from" = "$BACKUP_URL" ] && order=0 || order=1
        echo "$order $(value "$line" hash) ${compacted:-0}"
        ;;
    esac
  done <"$at/.new-hashes" | sort
}
compared=0
if [ $voters -gt 0 ]; then
  for try in 1 2 3; do
    begun=$(date +%s)
    found=$(hashes)
    # One that is down does not answer a second later either.
    if [ "$(printf '%s\n' "$found" | grep -c .)" -ge $voters ] || [ $(($(date +%s) - begun)) -gt 3 ] || [ "$try" = 3 ]; then break; fi
    sleep 1
  done
  own=$(printf '%s\n' "$found" | sed -n 's/^0 //p')
  # Members that have compacted differently cannot be compared.
  if [ -n "$own" ]; then
    other=$(printf '%s\n' "$found" | grep " ${own#* }\$" | grep -vc "^[01] $own\$") || :
    [ "$other" = 0 ] || fail "the members have different data at revision $revision: compare them with windlass etcd verify"
    compared=$(printf '%s\n' "$found" | grep -c "^[01] $own\$") || :
  fi
fi

sha256=$(sha256sum "$new" | cut -d ' ' -f 1)
name=$(date -u -d "@$taken" +%Y%m%dT%H%M%SZ)-r$revision
{ mv -f "$new" "$at/$name.db" && sync "$at"; } || fail "$at/$name.db cannot be written"
printf '{"layout":1,"cluster_id":"%s","member":"%s","is_leader":%s,"members":[%s],"compared":%s,"majority":%s,"has_leader":%s,"etcd_version":"%s","taken":%s,"revision":%s,"keys":%s,"size":%s,"sha256":"%s"}\n' \
  "$cluster" "$BACKUP_MEMBER" "$is_leader" "${names#,}" "$compared" $((voters / 2 + 1)) "$has_leader" "$version" "$taken" "$revision" "$keys" "$size" "$sha256" |
  write_whole "$at/$name.json" || fail "$at/$name.json cannot be written"
rm -f "$at"/.new-*

# in_doubt NAME: whether its data was not proved by a majority of the members: it may lack what the cluster has.
in_doubt() {
  described=$(cat "$at/$1.json")
  majority=$(value "$described" majority)
  compared=$(value "$described" compared)
  [ "$(value "$described" has_leader)" = false ] || [ "${compared:-0}" -lt "${majority:-0}" ]
}
doubtful() { backups | while IFS= read -r one; do ! in_doubt "$one" || echo "$one"; done; }

# Only now that there is a new one. Those of an earlier cluster stay: they may be all that is left of it.
# The new one counts, but stays in any case: with a clock that went back it may be sorted first. One in doubt replaces only others in doubt.
list=backups
! in_doubt "$name" || list=doubtful
$list | grep -vxF "$name" | head -n "-$((BACKUP_KEEP - 1))" | while IFS= read -r old; do rm -f "$at/$old.json" && rm -f "$at/$old.db"; done || fail "older backups of $at cannot be removed"
record ok '' || { echo "$BACKUP_DIR/last-try.json cannot be written" >&2; exit 1; }
echo "$at/$name.db: revision $revision, $keys keys, $size bytes, the hashes of $compared members"
