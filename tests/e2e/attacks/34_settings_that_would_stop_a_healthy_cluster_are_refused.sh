# shellcheck shell=bash
# Another user, another place of the write-ahead log, a directory of backups that others need, and a quota that the database has
# outgrown: each would stop members or
# writes. What is refused has changed nothing. A database that is full gets a higher quota.
a_cluster
well
refused() { # WORDS OPTION...
  local words=$1
  shift
  etcd_playbook "$@"
  exits 2
  says "$words"
  etcd_playbook --check "$@"
  exits 2
  healthy
}
refused 'runs as the user etcd, but etcd_user is other' -e etcd_user=other
refused 'has its write-ahead log in its data directory' -e '{"etcd_flags": {"wal-dir": "/var/lib/etcd/data/other"}}'
refused 'must be below etcd_data_dir' -e '{"etcd_flags": {"wal-dir": "/srv/wal"}}'

# A directory that etcd and others need does not become one for backups, which only root can read.
modes() { for host in h1 h2 h3; do on "$host" 'stat -c "%n %a %U" /var/lib /var/lib/etcd /etc/etcd'; done; }
before=$(modes)
mapfile -t deployment < <(apply_arguments)
for directory in /var/lib /var/lib/etcd /etc/etcd; do
  refused "etcd_local_backup_dir is $directory, which has the mode 07[0-9]+: a backup has everything in etcd" \
    -e etcd_local_backup_minutes=60 -e "etcd_local_backup_dir=$directory"
  windlass etcd backup "${deployment[@]}" -e "etcd_snapshot_dir=$directory" "$scratch/backups"
  exits 1
  says "etcd_snapshot_dir is $directory, which has the mode"
done
[ "$before" = "$(modes)" ] || broken "a directory has another mode: $(modes)"
healthy

filled() { head -c 1000000 /dev/zero | tr '\0' x | etcdctl put "e2e/filled/$1" >/dev/null; }
for i in $(seq 12); do filled "$i"; done
refused 'the database of h[123] has [0-9]+ bytes, and its quota is 8388608' -e etcd_quota_backend_bytes=8388608

quota() { etcd_playbook -e etcd_settle_seconds=1 -e "etcd_quota_backend_bytes=$1"; }
quota 30000000
exits 0
for i in $(seq 13 60); do filled "$i" || break; done
etcdctl alarm list | grep NOSPACE >/dev/null || broken "the database is not full"
# Not while other members keep the lower quota.
etcd_playbook --limit h1 -e etcd_quota_backend_bytes=1073741824
exits 2
says 'is full \(alarm NOSPACE\), so this run needs all its hosts'
etcdctl alarm list | grep NOSPACE >/dev/null || broken "the alarm was cleared"
quota 1073741824
exits 0
healthy
found=$(etcdctl alarm list)
[ -z "$found" ] || broken "the alarm was not cleared"
filled 61 || broken "nothing can be written"
etcd_playbook --check -e etcd_quota_backend_bytes=-1
exits 0

# Somebody made room with etcdctl: only the alarm is left to clear, and a dry run reports that.
quota 100000000
exits 0
for i in $(seq 62 180); do filled "$i" || break; done
etcdctl del --prefix e2e/filled/ >/dev/null
revision=$(etcdctl endpoint status -w json | grep -o '"revision":[0-9]*' | head -1)
etcdctl compact "${revision#*:}"
etcdctl defrag
etcdctl alarm list | grep NOSPACE >/dev/null || broken "the database was not full"
etcd_playbook --check -e etcd_quota_backend_bytes=100000000
exits 0
says 'this run would clear the alarm NOSPACE'
quota 100000000
exits 0
filled 1 || broken "nothing can be written"
etcdctl del --prefix e2e/filled/ >/dev/null
etcd_playbook -e etcd_settle_seconds=1
exits 0
