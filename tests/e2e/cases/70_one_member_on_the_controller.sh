# shellcheck shell=bash
# "This machine" is a throw-away host with windlass on it.
fresh
on h1 "mkdir -p /root/w/bin /root/w/etcd"
root_of_h1=$state/h1/root
cp "$WINDLASS" "$root_of_h1/root/w/bin/windlass"
cp "$ROOT"/target/etcd/3.5/* "$root_of_h1/root/w/etcd/"
cp -r "$ROOT/roles" "$ROOT/playbooks" "$root_of_h1/root/w/"
printf '[etcd]\nlocalhost\n' >"$root_of_h1/root/w/hosts.ini"
for changed in '[1-9][0-9]*' 0; do
  on h1 "cd /root/w && bin/windlass playbook -c local -i hosts.ini -e etcd_bundle=/root/w/etcd playbooks/etcd.yml" | tee "$output"
  recap localhost failed 0
  recap localhost changed "$changed"
done
on h1 ". /root/w/credentials/etcd/etcdctl.env && /opt/windlass/etcd/etcd/current/etcdctl endpoint health"
