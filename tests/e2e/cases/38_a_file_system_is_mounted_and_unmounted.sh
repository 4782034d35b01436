# shellcheck shell=bash
# In a mount namespace of their own: nothing of this machine is mounted over or written to. What modprobe keeps for the next
# boot is tried there, too.
cat >"$scratch/mount.yml" <<'EOF'
- hosts: localhost
  connection: local
  gather_facts: false
  vars:
    place: { path: "{{ top }}/a/b", src: tmpfs, fstype: tmpfs, fstab: "{{ top }}/fstab" }
  tasks:
    - mount: "{{ place | combine({'state': state, 'opts': opts}) }}"
EOF
cat >"$scratch/bound.yml" <<'EOF'
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - mount: { path: "{{ top }}/bound", src: "{{ top }}/real", fstype: none, opts: bind, state: ephemeral }
EOF
cat >"$scratch/modules.yml" <<'EOF'
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - modprobe: { name: wl_test, params: "{{ params }}", persistent: "{{ persistent }}" }
EOF
cat >"$scratch/all" <<EOF
set -e
top=$scratch/top
mkdir -p \$top/real
is() { awk -v p="\$top/a/b" '\$2 == p { print \$3, \$4 }' /proc/self/mounts; }
run() { "$WINDLASS" playbook -e top=\$top "\$@" | tee said; }
mounts() { run -e "state=\$1" -e "opts=\$2" "\${@:3}" "$scratch/mount.yml"; }
mounts mounted size=1m --check; grep changed=1 said; [ ! -e \$top/a ]; [ ! -e \$top/fstab ]
mounts mounted size=1m; grep changed=1 said; is | grep size=1024k
mounts mounted size=1m; grep changed=0 said
mounts mounted size=2m; grep changed=1 said; is | grep size=2048k
mounts remounted size=3m; grep changed=1 said; is | grep size=3072k
mounts unmounted size=2m; grep changed=1 said; [ -z "\$(is)" ]; grep -c tmpfs \$top/fstab
mounts unmounted size=2m; grep changed=0 said
mounts mounted size=2m; grep changed=1 said; is | grep size=2048k
mounts absent size=2m; grep changed=1 said; [ -z "\$(is)" ]; [ ! -e \$top/a/b ]; [ ! -s \$top/fstab ]
mounts absent size=2m; grep changed=0 said
touch \$top/real/x
run "$scratch/bound.yml"; grep changed=1 said; [ -e \$top/bound/x ]
run "$scratch/bound.yml"; grep changed=1 said; [ -e \$top/bound/x ]
mount -t tmpfs tmpfs \$top/bound
if run "$scratch/bound.yml"; grep failed=0 said; then exit 1; fi
grep 'something other than' said
umount \$top/bound; umount \$top/bound
# A kernel's module that is built in, so that nothing has to be loaded.
mkdir \$top/over; mount -t tmpfs tmpfs \$top/over; mkdir \$top/over/{1,2,3,4}
mount -t overlay overlay -o "lowerdir=/etc,upperdir=\$top/over/1,workdir=\$top/over/2" /etc
mount -t overlay overlay -o "lowerdir=/lib,upperdir=\$top/over/3,workdir=\$top/over/4" "\$(readlink -f /lib)"
mkdir -p "/lib/modules/\$(uname -r)" /etc/modules-load.d /etc/modprobe.d
echo kernel/drivers/wl_test.ko >"/lib/modules/\$(uname -r)/modules.builtin"
echo "options wl_test old=1" >/etc/modprobe.d/other.conf
# What others wrote stays.
printf 'blacklist wl_other\noptions wl_test old=2\n' >/etc/modprobe.d/wl_test.conf
keeps() { run -e "params='\$1'" -e "persistent=\$2" "\${@:3}" "$scratch/modules.yml"; }
keeps 'a=1 b=2' present --check; grep changed=1 said; [ ! -e /etc/modules-load.d/wl_test.conf ]
keeps 'a=1 b=2' present; grep changed=1 said
[ "\$(cat /etc/modules-load.d/wl_test.conf)" = wl_test ]
[ "\$(cat /etc/modprobe.d/wl_test.conf)" = "blacklist wl_other
options wl_test a=1 b=2" ]
[ "\$(cat /etc/modprobe.d/other.conf)" = "#options wl_test old=1" ]
keeps 'a=1 b=2' present; grep changed=0 said
keeps '' absent; grep changed=1 said
[ "\$(cat /etc/modules-load.d/wl_test.conf)" = "#wl_test" ]
keeps '' absent; grep changed=0 said
EOF
cd "$scratch" || exit
unshare -m bash "$scratch/all" >"$scratch/told" 2>&1 || { tail -n 20 "$scratch/told"; broken "what is mounted, or kept for the next boot, is not as it should be"; }
