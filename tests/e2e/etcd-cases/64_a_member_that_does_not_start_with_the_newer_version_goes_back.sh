# shellcheck shell=bash
# Takes long: the second member does not start with the newer version of etcd. The way back is open, while clients read and write.
. "$ROOT/tests/e2e/etcd-lib.sh"
"$ROOT/tests/etcd-binaries" 3.5.34 3.6.15 || broken "there is no etcd to upgrade to"
fresh_five
members h1 h2 h3
exits 0
ETCD=3.5.34 members h1 h2 h3
exits 0
lead h3
start_clients
# What the role of etcd does not know of, and what happens with 3.6 only.
on h2 'mkdir -p /etc/systemd/system/etcd.service.d && printf "[Service]\nExecStartPre=/bin/sh -c \"! readlink /opt/windlass/etcd/etcd/current | grep ^3.6\"\n" >/etc/systemd/system/etcd.service.d/test.conf && systemctl daemon-reload'
windlass etcd upgrade "${change_options[@]}" --bundle "$ROOT/target/etcd/3.6.15" -e etcd_gate_retries=15 --yes
exits 2
[ "$(ask h1 /version | grep -c '"etcdserver":"3.6.15"')" = 1 ] || broken "h1 does not run 3.6.15"
[ "$(ask h3 /version | grep -c '"etcdserver":"3.5.34"')" = 1 ] || broken "h3 does not run 3.5.34"
change downgrade 3.5.34 --yes
exits 2
says 'h2 does not run.* windlass apply --limit h2 with a bundle of etcd 3[.]5, the version of the cluster'
windlass apply -i "$(inventory_of h1 h2 h3)" -e "etcd_bundle=$ROOT/target/etcd/3.5.34" --playbooks "$ROOT/playbooks" --limit h2 --yes
exits 0
are_members h1 h2 h3
change downgrade 3.5.34 --yes
exits 0
versions_are 3.5.34 3.5.0
history_fits
