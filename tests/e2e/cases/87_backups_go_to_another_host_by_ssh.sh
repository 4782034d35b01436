# shellcheck shell=bash
# Takes its turn: every third day.
# Backups in a directory of another host, which ssh reaches: written whole, listed, kept, and restored from there alone.
a_cluster
mapfile -t deployment < <(apply_arguments)
deployment+=(-e etcd_settle_seconds=1)
address=$(sed -n 's/^h3 ansible_host=\([^ ]*\).*/\1/p' "$inventory")
setting() { sed -n "s/.*$1=\([^ ']*\).*/\1/p" "$inventory" | head -n 1; }
# The account keeper of h3, known by its alias, is what the place names.
on h3 'useradd -m -s /bin/bash keeper && mkdir -m 700 /home/keeper/.ssh && cp /root/.ssh/authorized_keys /home/keeper/.ssh/ && chown -R keeper: /home/keeper/.ssh'
trap 'on h3 "umount /home/keeper/small; userdel -f -r keeper" >/dev/null 2>&1; rm -rf "$scratch" || true' EXIT
export HOME=$scratch/home XDG_CACHE_HOME=$scratch/cache
mkdir -p "$HOME/.ssh" "$scratch/cache"
config() { printf 'Host safe\n  HostName %s\n  User keeper\n  IdentityFile %s\n  UserKnownHostsFile %s\n' "$address" "$(setting ansible_ssh_private_key_file)" "$1" >"$HOME/.ssh/config"; }
config "$(setting UserKnownHostsFile)"
there=/home/keeper/backups/karmada
place=ssh://safe$there
listed() { grep -c ' yes$' "$output" || true; }
# files_of_uploads: what is not a backup with a name.
files_of_uploads() { on h3 "find /home/keeper/backups -name '.upload-*'"; }
nothing_left() {
  local found
  found=$(find "$XDG_CACHE_HOME" -type f)
  [ -z "$found" ] || broken "files are left: $found"
  found=$(files_of_uploads)
  [ -z "$found" ] || broken "an upload is left: $found"
}

# What is no place, or cannot be trusted, is refused before a host of etcd is asked for a snapshot.
for wrong in ssh://safe ssh://safe/ ssh://keeper:kdjfh77@safe/backups ssh://safe/a/../b keeper@safe:/backups sftp://keeper:kdjfh77@safe/backups; do
  windlass etcd backup $wrong "${deployment[@]}"
  exits 1
  says 'is no place for backups'
  says 'write (s3://BUCKET/PREFIX, )?ssh://USER@ADDRESS'
  ! grep -q kdjfh77 "$output" || broken "a password is shown"
done
config /dev/null
windlass etcd backup $place "${deployment[@]}"
exits 1
says "^error: $place: .*host key"
says '^hint: ssh must reach safe from here without a password'
config "$(setting UserKnownHostsFile)"
windlass etcd backups $place
exits 1
says "^error: $place: "
on h3 'mkdir -p -m 777 /home/keeper/open && chmod 777 /home/keeper/open && chown keeper: /home/keeper/open'
windlass etcd backup ssh://safe/home/keeper/open "${deployment[@]}"
exits 1
says 'ssh://safe/home/keeper/open is not safe for backups: others can write to it \(user keeper, mode 0777\)'

etcdctl put e2e "on the other host"
etcdctl put e2e/random "$(head -c 60000 /dev/urandom | base64 -w 0)" >/dev/null
windlass etcd backup $place "$scratch/backups" "${deployment[@]}"
exits 0
says "^$place/[0-9TZ]+-r[0-9]+$"
says "^$scratch/backups/[0-9TZ]+-r[0-9]+$"
first=$(sed -nE "s#^$place/(.*)#\1#p" "$output")
windlass etcd backups $place
exits 0
[ "$(listed)" = 1 ] || broken "there is not one backup"
[ "$(on h3 "stat -c '%U %a' $there $there/$first $there/$first/snapshot.db.zst" | sort -u | tr '\n' ' ')" = 'keeper 600 keeper 700 ' ] ||
  broken "others can read a backup"
nothing_left

# A full disk: no backup, and nothing of it is left.
on h3 'mkdir /home/keeper/small && mount -t tmpfs -o size=16k,mode=700,uid=keeper tmpfs /home/keeper/small'
windlass etcd backup ssh://safe/home/keeper/small "${deployment[@]}"
exits 1
says 'No space left on device'
found=$(on h3 'ls -A /home/keeper/small')
[ -z "$found" ] || broken "files are left on the full disk"
on h3 'umount /home/keeper/small && rmdir /home/keeper/small'

# One place that fails does not keep the others from having it, and is no success.
on h3 "chmod 500 $there"
etcdctl put e2e two
windlass etcd backup $place "$scratch/backups" "${deployment[@]}"
exits 2
says "the backup is complete, but $place: cannot .*Permission denied"
on h3 "chmod 700 $there"

# A process that is killed in the middle leaves no backup; its upload is removed a day later.
on h3 "mkdir $there/.upload-0011223344556677 && touch -d '2 days ago' $there/.upload-0011223344556677"
on h3 "chown keeper: $there/.upload-0011223344556677"
# It is killed while the host reads what arrived.
on h3 'mkdir /home/keeper/slow && printf "#!/bin/sh\nsleep 20\n" >/home/keeper/slow/sha256sum && chmod 755 /home/keeper/slow/sha256sum'
on h3 'echo "PATH=/home/keeper/slow:\$PATH" >/home/keeper/.bashrc'
"$WINDLASS" etcd backup $place "${deployment[@]}" >"$scratch/other" 2>&1 &
other=$!
for _ in $(seq 600); do
  found=$(on h3 "find /home/keeper/backups -path '*/.upload-*' -type f")
  [ -z "$found" ] || break
  sleep 0.1
done
[ -n "$found" ] || broken "no upload was seen"
kill -9 $other
! wait $other || broken "it ended by itself"
# The old one was removed before the new one was sent: it may be what fills the disk.
found=$(files_of_uploads)
! matches 0011223344556677 <<<"$found" || broken "an old upload is left"
on h3 'rm -r /home/keeper/slow /home/keeper/.bashrc'
# The next backup that begins a minute later or more removes what it left here.
killed=$(find "$XDG_CACHE_HOME" -name '.partial-*')
windlass etcd backups $place
exits 0
[ "$(listed)" = 1 ] || broken "a backup that was not finished is listed"
for value in three four; do
  etcdctl put e2e $value
  windlass etcd backup $place --keep 2 "${deployment[@]}"
  exits 0
done
windlass etcd backups $place
exits 0
[ "$(listed)" = 2 ] || broken "two backups are not kept"
found=$(on h3 "ls -d $there/.upload-0011223344556677 $there/$first 2>/dev/null || true")
[ -z "$found" ] || broken "an old upload or a backup that is not wanted is left"

# A damaged backup is no good one.
newest=$(sed -nE 's/^([0-9TZ]+-r[0-9]+) .*/\1/p' "$output" | head -n 1)
on h3 "cp -a $there/$newest /root/whole && printf x | dd of=$there/$newest/snapshot.db.zst bs=1 seek=100 conv=notrunc status=none"
windlass etcd backups $place
exits 2
says "^$newest .* no: damaged: its digest differs"
windlass etcd restore "$place/$newest" --name karmada "${deployment[@]}"
exits 1
says "the backup $place/$newest cannot be used: damaged: its digest differs from the manifest's; nothing was changed"
on h3 "rm -rf $there/$newest && mv /root/whole $there/$newest"

# A host that says nothing keeps nobody from stopping: this ends before windlass gives up.
python3 -c 'import socket, time
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(8); print(s.getsockname()[1], flush=True); time.sleep(60)' >"$scratch/silent" &
silent=$!
until [ -s "$scratch/silent" ]; do sleep 0.1; done
timeout -s INT 2 "$WINDLASS" etcd rehearse "ssh://keeper@127.0.0.1:$(cat "$scratch/silent")/b/$newest" "${deployment[@]}" >"$output" 2>&1 && broken "it is restored"
kill $silent
does_not_say 'no SSH greeting'
says 'stopping when the running tasks have finished'

# It is restored into a separate etcd, and then all data is lost.
windlass etcd rehearse "$place/$newest" "${deployment[@]}"
exits 0
says 'the data is what the members had'
etcdctl put e2e "not in a backup"
rm -rf "$scratch/backups"
for h in h1 h2 h3; do on $h systemctl stop etcd; done
windlass etcd recover --check --backups $place "${deployment[@]}"
exits 2
says "windlass etcd restore $place/$newest "
for h in h1 h2 h3; do on $h rm -rf /var/lib/etcd/data; done
windlass etcd restore $place/20200101T000000Z-r1 --name karmada "${deployment[@]}"
exits 1
says "the backup $place/20200101T000000Z-r1 cannot be used: there is no such backup"
windlass etcd restore "$place/$newest" --name karmada "${deployment[@]}"
exits 0
[ "$(etcdctl get e2e --print-value-only)" = four ] || broken "the restored cluster has not the newest value of the backup"
found=$(find "$XDG_CACHE_HOME" -type f -not -path "${killed:-none}/*")
[ -z "$found" ] || broken "files are left: $found"
windlass etcd restore --release --name karmada "${deployment[@]}"
exits 0
healthy
