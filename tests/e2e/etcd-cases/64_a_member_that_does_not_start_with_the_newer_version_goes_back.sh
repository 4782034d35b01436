# shellcheck shell=bash
# Takes long: the second member does not start with the newer version of etcd. The way back is open, while clients read and write.
. "$ROOT/tests/e2e/etcd-lib.sh"
"$ROOT/tests/etcd-binaries" 3.6.15 || broken "there is no etcd to upgrade to"
fresh_three_at 3.5.34
start_clients
killed_while_mixed 3.6.15 upgrade
# From now on, no other member starts with 3.6. The role of etcd does not know why.
for h in h1 h2 h3; do
  ! ask $h /version | matches '"etcdserver":"3.5.34"' ||
    on $h 'mkdir -p /etc/systemd/system/etcd.service.d && printf "[Service]\nExecStartPre=/bin/sh -c \"! readlink /opt/windlass/etcd/etcd/current | grep ^3.6\"\n" >/etc/systemd/system/etcd.service.d/test.conf && systemctl daemon-reload'
done
windlass etcd upgrade "${change_options[@]}" --bundle "$ROOT/target/etcd/3.6.15" -e etcd_gate_retries=15 --yes
exits 2
down=
for h in h1 h2 h3; do on $h systemctl is-active --quiet etcd || down=$down$h; done
grep -qx 'h[123]' <<<"$down" || broken "these members are down: $down"
change downgrade 3.5.34 --yes
exits 2
says "$down does not run.* windlass apply --limit $down with a bundle of etcd 3[.]5, the version of the cluster"
windlass apply -i "$(inventory_of h1 h2 h3)" -e "etcd_bundle=$ROOT/target/etcd/3.5.34" --playbooks "$ROOT/playbooks" --limit "$down" --yes
exits 0
are_members h1 h2 h3
change downgrade 3.5.34 --yes
exits 0
versions_are 3.5.34 3.5.0
history_fits
