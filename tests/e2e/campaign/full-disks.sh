# shellcheck shell=bash
# A file system of random size in a random place of a host: the run succeeds, or says what is full and can be completed later.
one_of h1 h2 h3; victim=$picked
one_of /opt /opt/windlass /etc/etcd /var/lib/etcd /var/lib/windlass /dev/shm /tmp /var/tmp; place=$picked
one_of 4k 64k 300k 1m 5m 20m 26m 40m; size=$picked
echo "== $place of $victim is $size"
fresh
hosts shrink "$victim" "$place" "$size"
# Half of the time something else has filled most of it.
pick 2
[ "$picked" = 0 ] || on "$victim" "head -c 100m /dev/zero >$place/filler 2>/dev/null; truncate -s -8k $place/filler; true"
etcd_playbook -e preflight_skip=space
if [ "$code" = 0 ]; then
  healthy
  etcd_playbook -e preflight_skip=space
  exits 0
  nothing_changed
  for h in h1 h2 h3; do
    on $h 'cat /opt/windlass/etcd/etcd/current/etcd' | cmp - "$ROOT/target/etcd/3.5/etcd" || broken "exit code 0, but etcd on $h is not whole"
  done
else
  says '[Nn]o space left|disk is full|has [0-9]+ .*free|not enough (space|room)|the reason is hidden by no_log'
  on "$victim" "umount -l $place; systemctl stop etcd 2>/dev/null; true"
  # What etcd itself wrote on the small file system is gone with it: the cluster was never formed.
  converges
fi
