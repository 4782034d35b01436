# What is gathered on the host, part by part: a line `#: part` begins one. Other comment lines are not sent.
# The output is read by sections; a file's lines come as `path:line`, as grep prints them, in one process for many files.
#: always
m() { printf '\n%s%s\n' @MARK@ "$1"; }
# Names of those that exist.
there() {
for i do
if [ -e "$i" ]; then printf '%s\n' "$i"; fi
done
}
#: minimal
m files
grep -Hs '' /etc/os-release /usr/lib/os-release /etc/lsb-release /etc/redhat-release /etc/centos-release /etc/oracle-release \
/etc/system-release /etc/debian_version /etc/alpine-release /etc/machine-id /var/lib/dbus/machine-id /proc/cmdline \
/proc/sys/crypto/fips_enabled /proc/1/comm /proc/self/status /etc/resolv.conf /etc/ssh/ssh_host_*_key.pub \
/sys/fs/selinux/enforce /sys/fs/selinux/policyvers /etc/selinux/config /proc/loadavg
m there
there /run/systemd/system /dev/.run/systemd /dev/.systemd /sbin/openrc /sbin/openrc-init /etc/init.d /etc/runit \
/usr/bin/apt-get /usr/bin/dnf5 /usr/bin/dnf-3 /usr/bin/dnf /usr/bin/microdnf /usr/bin/yum /usr/bin/zypper /sbin/apk \
/usr/bin/apk /usr/bin/pacman /usr/bin/emerge /usr/bin/xbps-install /usr/bin/opkg /bin/opkg /usr/bin/swupd \
/run/ostree-booted /usr/bin/lsb_release /sys/kernel/security/apparmor /sbin/initctl /usr/bin/runsvdir
m init
[ -L /sbin/init ] && readlink /sbin/init
m uname
uname -s -n -r -v -m
m date
date '+%Y|%m|%d|%H|%M|%S|%s|%N|%Z|%z|%A|%w|%W'
m passwd
getent passwd @USER@ 2>/dev/null || grep '^'@USER@: /etc/passwd
m hosts
wl_i=$(uname -n)
if command -v timeout >/dev/null; then t='timeout 5'; else t=; fi
# Asked for a name, `getent hosts` looks for an IPv6 address first and waits for DNS although a file has the name.
wl_a=$($t getent ahosts "$wl_i")
case $? in
0) $t getent hosts "${wl_a%% *}" ;;
1) $t getent hosts "$wl_i" ;;
esac
m bits
getconf LONG_BIT
m chroot
if [ -r /proc/1/root/. ]; then
# shellcheck disable=SC3013  # every sh that hosts have knows it
if [ /proc/1/root/. -ef / ]; then echo no; else echo yes; fi
fi
m caps
command -v capsh >/dev/null && capsh --print
m env
(wl_u; @EXPORTS@ env -0 2>/dev/null || env)
#: systemd
m systemd
for i in /run/systemd/system /dev/.run/systemd /dev/.systemd; do
if [ -e $i ] && command -v systemctl >/dev/null; then systemctl --version; break; fi
done
#: storage
m storage
grep -Hs '' /etc/iscsi/initiatorname.iscsi /etc/nvme/hostnqn /sys/class/fc_host/*/port_name
#: hardware
m hardware
grep -Hs '' /proc/meminfo /proc/cpuinfo /proc/uptime /proc/self/mounts /proc/self/mountinfo /sys/class/dmi/id/* \
/sys/block/*/queue/discard_max_hw_bytes /sys/block/*/device/serial /sys/block/*/removable /sys/block/*/size /sys/block/*/queue/rotational /sys/block/*/queue/scheduler /sys/block/*/queue/logical_block_size \
/sys/block/*/queue/discard_granularity /sys/block/*/device/model /sys/block/*/device/vendor /sys/block/*/dm/name \
/sys/block/*/*/partition /sys/block/*/*/start /sys/block/*/*/size
m nproc
nproc
m links
ls -l /dev/disk/by-uuid /dev/disk/by-label /dev/disk/by-id 2>/dev/null
m block
ls -l /sys/block
m volumes
# Logical volumes; only root may ask.
if ! command -v vgs >/dev/null; then echo none
elif [ "$(id -u)" = 0 ]; then
for i in vgs lvs pvs; do
if command -v $i >/dev/null; then $i --noheadings --nosuffix --units g --separator , | sed "s/^ */$i,/"; fi
done
else echo refused
fi
m holders
there /sys/block/*/holders/* /sys/block/*/slaves/*
m sizes
# A network file system that does not answer must not hold us for ever.
if command -v timeout >/dev/null; then t='timeout 10'; else t=; fi
set --
while read -r d p f; do
case $d in
/*|*:/*) set -- "$@" "$(printf '%b' "$p")" ;;
esac
done </proc/self/mounts
[ $# = 0 ] || $t stat -f -c '%S %b %a %c %d %n' "$@"
#: network
m network
grep -Hs '' /sys/class/net/*/address /sys/class/net/*/mtu /sys/class/net/*/operstate /sys/class/net/*/type \
/sys/class/net/*/flags /sys/class/net/*/speed /sys/class/net/*/bridge/bridge_id /sys/class/net/*/bridge/stp_state \
/sys/class/net/*/bonding/mode /sys/class/net/*/bonding/miimon /sys/class/net/*/bonding/lacp_rate \
/sys/class/net/*/bonding/slaves /sys/class/net/*/bonding/primary /sys/class/net/*/bonding/all_slaves_active \
/sys/class/net/*/bonding_slave/perm_hwaddr
m netlinks
ls -ld /sys/class/net/*/device /sys/class/net/*/device/driver/module 2>/dev/null
m brif
there /sys/class/net/*/brif/*
m addresses
ip -o addr show || ifconfig -a
m route4
ip -4 route get 8.8.8.8
m route6
ip -6 route get 2404:6800:400a:800::1012
m local4
ip -4 route show table local
m local6
ip -6 route show table local
#: virtual
m virtual
grep -Hs '' /sys/class/dmi/id/product_name /sys/class/dmi/id/sys_vendor /sys/class/dmi/id/product_family \
/sys/class/dmi/id/bios_vendor /proc/1/cgroup /proc/xen/capabilities /run/systemd/container
m cpu
grep -E '^(model name|vendor_id|machine)' /proc/cpuinfo
grep '^VxID:' /proc/self/status
m modules
while read -r i j; do
case $i in
kvm|vboxdrv|vboxguest|virtio|xen*) printf '%s\n' "$i" ;;
esac
done </proc/modules
m virtual-there
there /.dockerenv /.dockerinit /run/.containerenv /proc/xen /proc/vz /proc/bc /proc/lve /dev/kvm
m environ
[ -r /proc/1/environ ] && tr '\0' '\n' </proc/1/environ | grep '^container='
