# shellcheck shell=bash
# disk.sh: a host's disk is an overlay over the template; what differs from it lies in STATE/HOST/upper.

# An overlay's upper directory cannot lie on an overlay (the root of many CI containers): there, in memory.
prepare_state() {
  [ "$(stat -f -c %T "$state")" = overlayfs ] || return 0
  mount -t tmpfs -o size=8g,mode=755 "$prefix-hosts" "$state"
  remember_settings
}

attach_disk() {
  local d=$state/$1
  mountpoint -q "$d/root" || mount -t overlay "$prefix-$1" -o "lowerdir=$(template_dir),upperdir=$d/upper,workdir=$d/work" "$d/root"
}

detach_disk() { ! mountpoint -q "$state/$1/root" || umount -l "$state/$1/root"; }

# Writes what makes this host this host.
furnish() {
  local h=$1 r=$state/$1/root user other
  attach_disk "$h"
  install -m 600 "$state/$h/keys/"ssh_host_*_key "$r/etc/ssh/"
  install -m 644 "$state/$h/keys/"ssh_host_*_key.pub "$r/etc/ssh/"
  for user in root home/deploy home/ops home/plain home/viasu home/dashy home/busy; do
    install -d -m 700 "$r/$user/.ssh"
    cat "$state/id_ed25519.pub" "$state/id_encrypted.pub" >"$r/$user/.ssh/authorized_keys"
    chown -R --reference="$r/$user" "$r/$user/.ssh"
  done
  echo "$h" >"$r/etc/hostname"
  chmod 644 "$r/etc/hostname"
  {
    echo "127.0.0.1 localhost"
    for other in $(host_names); do echo "$(address_of "$other") $other"; done
  } >"$r/etc/hosts"
  [ "$python" = yes ] || rm -rf "$r"/usr/bin/python3* "$r"/usr/lib/python3* "$r"/usr/share/python3*
}

make_keys() {
  local type
  [ -e "$state/id_ed25519" ] || ssh-keygen -q -t ed25519 -N '' -C windlass-hosts -f "$state/id_ed25519"
  [ -e "$state/id_encrypted" ] || ssh-keygen -q -t ed25519 -N keypass -C windlass-hosts-encrypted -f "$state/id_encrypted"
  local h
  for h in $(host_names); do
    mkdir -p "$state/$h/keys"
    for type in ed25519 ecdsa; do ssh-keygen -q -t "$type" -N '' -C "$h" -f "$state/$h/keys/ssh_host_${type}_key"; done
  done
}

blank_disk() {
  local d=$state/$1
  detach_disk "$1"
  rm -rf --one-file-system "$d/upper" "$d/work"
  mkdir -p "$d/upper" "$d/work" "$d/root"
  chmod 755 "$d/upper"
}

# Everything on the disk that is not of the template: mode, owner, size or target, digest. Without what a running
# system writes by itself.
verb_tree() {
  local upper=$state/$1/upper
  (
    cd "$upper" || exit
    find . -ignore_readdir_race -mindepth 1 \( -path ./run -o -path ./tmp/systemd-private-\* -o -path ./var/tmp/systemd-private-\* -o -path ./var/log -o -path ./usr/lib/python3\* \
      -o -path ./usr/share/python3\* -o -path ./usr/bin/python3\* -o -path ./var/lib/systemd -o -path ./var/lib/sudo \) -prune \
      -o -type f -printf '%p %M %U:%G %s ' -exec sh -c 'sha256sum <"$1" | cut -c1-16' sh {} \; \
      -o -type l -printf '%p %M %U:%G -> %l\n' -o -printf '%p %M %U:%G\n'
  ) | LC_ALL=C sort
}

remove_disks() {
  local mount h
  for mount in $(awk -v at="$state/h" 'index($2, at) == 1 {print $2}' /proc/mounts | sort -r); do umount -l "$mount"; done
  for h in "$state"/h[0-9]*; do
    [ -d "$h" ] || continue
    rm -rf --one-file-system "$h" "/run/systemd/nspawn/propagate/$prefix-${h##*/}" "/run/systemd/nspawn/unix-export/$prefix-${h##*/}"
  done
}
