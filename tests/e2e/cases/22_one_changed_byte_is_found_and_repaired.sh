# shellcheck shell=bash
programs=/opt/windlass/etcd/etcd/current
for h in h1 h2 h3; do on $h sha256sum $programs/etcdctl /etc/etcd/etcd.env /etc/systemd/system/etcd.service; done >"$scratch/before"
starts >"$scratch/starts"
on h1 "printf x | dd of=$programs/etcdctl bs=1 seek=1000000 conv=notrunc"
on h2 "sed -i 's/100/101/' /etc/etcd/etcd.env"
on h3 "chmod 0755 /var/lib/etcd/data"
etcd_playbook --check
exits 0
recap h1 changed 1
on h2 grep -q 101 /etc/etcd/etcd.env || broken "check mode changed a file"
etcd_playbook
exits 0
recap h1 changed 1
for h in h1 h2 h3; do on $h sha256sum $programs/etcdctl /etc/etcd/etcd.env /etc/systemd/system/etcd.service; done >"$scratch/after"
diff "$scratch/before" "$scratch/after" || broken "not mended"
starts | diff "$scratch/starts" - || broken "a member was restarted, although its process has these files"
[ "$(on h3 stat -c %a /var/lib/etcd/data)" = 700 ] || broken "the mode is not mended"
etcd_playbook
nothing_changed
