# shellcheck shell=bash
# template.sh: the disk that all hosts start from, made once with debootstrap and kept in the cache.

# The directory of the template; its name says what it was made of, so a change here makes a new one.
template_dir() {
  echo "$cache/bookworm-$(sha256sum "$here/lib/template.sh" | cut -c1-12)"
}

make_template() {
  local template=$1 scratch work r
  mkdir -p "$cache/debs"
  exec 8>"$cache/lock"
  flock 8
  if [ ! -e "$template.complete" ]; then
    say "making the hosts' disk with debootstrap (once; one to two minutes)"
    # dpkg syncs every file: memory is many times faster than a disk, where there is room.
    scratch=/dev/shm
    [ "$(df --output=avail -m "$scratch" 2>/dev/null | tail -1)" -gt 1500 ] || scratch=$cache
    work=$(mktemp -d -p "$scratch" hosts.XXXXXX)
    r=$work/root
    if ! debootstrap --variant=minbase --cache-dir="$cache/debs" --include="$(template_packages)" bookworm "$r" "$mirror" \
      >"$work/log" 2>&1; then
      tail -20 "$work/log" >&2
      rm -rf --one-file-system "$work"
      fail "debootstrap failed"
    fi
    template_quiet "$r"
    template_sshd "$r"
    template_users "$r"
    template_slim "$r"
    rm -rf --one-file-system "$template"
    mkdir -p "$template"
    cp -a "$r/." "$template/"
    rm -rf --one-file-system "$work"
    touch "$template.complete"
  fi
  exec 8>&-
}

# python3 is here for `--python`; a host without it gets it deleted. The rest is what a server usually has.
template_packages() {
  echo "systemd,systemd-sysv,dbus,libpam-systemd,openssh-server,sudo,python3,iproute2,procps,ca-certificates,netbase,busybox"
}

# No devices, no kernel, no updates: what would fail or wait in a host that is not a real machine.
template_quiet() {
  local r=$1 unit
  for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service \
    fstrim.timer systemd-journald-audit.socket dev-hugepages.mount sys-kernel-config.mount sys-kernel-debug.mount \
    sys-kernel-tracing.mount sys-fs-fuse-connections.mount getty.target console-getty.service \
    systemd-firstboot.service systemd-update-utmp.service proc-sys-fs-binfmt_misc.automount; do
    ln -sf /dev/null "$r/etc/systemd/system/$unit"
  done
  mkdir -p "$r/etc/systemd/journald.conf.d"
  printf '[Journal]\nStorage=volatile\nRuntimeMaxUse=8M\n' >"$r/etc/systemd/journald.conf.d/small.conf"
  # Each host makes its own machine id at its first start; it would take dbus's if there were one.
  : >"$r/etc/machine-id"
  rm -f "$r/var/lib/dbus/machine-id"
}

template_sshd() {
  local r=$1
  mkdir -p "$r/etc/ssh/sshd_config.d"
  # MaxStartups: with aliases, many "hosts" share one sshd. MaxSessions stays at sshd's own 10.
  printf '%s\n' 'UseDNS no' 'MaxStartups 400:30:800' 'PermitRootLogin prohibit-password' \
    'PasswordAuthentication yes' 'AllowAgentForwarding yes' 'LoginGraceTime 30' >"$r/etc/ssh/sshd_config.d/hosts.conf"
  rm -f "$r"/etc/ssh/ssh_host_*
}

# The people of README.md.
template_users() {
  local r=$1 user
  chroot "$r" groupadd may-su
  for user in deploy ops plain; do chroot "$r" useradd -m -s /bin/bash "$user"; done
  chroot "$r" useradd -m -s /bin/bash -G may-su viasu
  chroot "$r" useradd -m -s /bin/dash dashy
  mkdir -p "$r/usr/local/lib/busybox"
  ln -s /bin/busybox "$r/usr/local/lib/busybox/sh" # busybox goes by the name it is called by
  chroot "$r" useradd -m -s /usr/local/lib/busybox/sh busy
  echo /usr/local/lib/busybox/sh >>"$r/etc/shells"
  printf '%s\n' root:rootpass ops:opspass plain:plainpass viasu:viasupass | chroot "$r" chpasswd
  for user in deploy dashy busy; do echo "$user ALL=(ALL) NOPASSWD: ALL" >"$r/etc/sudoers.d/$user"; done
  echo 'ops ALL=(ALL) ALL' >"$r/etc/sudoers.d/ops"
  chmod 0440 "$r"/etc/sudoers.d/*
  # su is for viasu alone, and for root without a password.
  sed -i 's/^# *auth *required *pam_wheel.so$/auth required pam_wheel.so group=may-su/' "$r/etc/pam.d/su"
  grep -q 'group=may-su' "$r/etc/pam.d/su" || fail "cannot set up su in the template"
}

template_slim() {
  local r=$1
  rm -rf "$r"/var/cache/apt/archives/*.deb "$r"/var/lib/apt/lists/* "$r"/usr/share/doc/* "$r"/usr/share/man/* \
    "$r"/usr/share/locale/* "$r"/var/log/*.log
}
