# Needs Karmada's own programs.
. "$ROOT/tests/e2e/karmada-lib.sh"
# From bare hosts to members by one file; a member leaves by its lines; everything goes by the deployment's name.
fresh
member_down
member_up
file=$state/one.yaml
write() {
  skeleton h1 h2 h3 | sed "s#^    - {name: cp-3.*#&\n    - {name: south-1, address: $(address_of h5), user: root}#"
  printf '  members:\n'
  [ "$1" = without ] || printf '    - name: north\n      kubeconfig: {file: members/h4.kubeconfig}\n'
  printf '    - name: south\n      syncMode: Pull\n      kubeconfigOnHost: {host: south-1, path: /srv/member/kubeconfig}\n      agent: {host: south-1}\n'
}
# What runs on a host, and since when.
services() { for h in h1 h2 h3 h5; do on $h 'systemctl show -p Id -p ExecMainStartTimestampMonotonic etcd "karmada-*.service"'; done; }

write with >"$file"
trees >"$scratch/before"
site plan
exits 0
says '^members: needs controlPlane first \(no API server answers yet\): north, south$'
trees >"$scratch/planned"
same_trees "$scratch/before" "$scratch/planned"
# Nobody can be asked.
site apply
exits 1
site apply --yes
exits 0
joined north Push || broken "north is not a member"
joined south Pull || broken "south is not a member"
site apply --yes
exits 0
says '^Nothing to do\.$'
site status -o json
exits 0
says '"healthy": true'

services >"$scratch/before"
write without >"$file"
site apply --yes --max-removals 0
exits 1
says 'refusing to remove 1 member \(north\): --max-removals allows 0'
site apply --yes
exits 0
says '^removals: to remove: north$'
does_not_say 'applying (etcd|controlPlane|members|addons): '
! kubectl get cluster north || broken "north is still a member"
services >"$scratch/after"
diff "$scratch/before" "$scratch/after" || broken "something else was touched"

on h2 systemctl stop karmada-scheduler
site status
exits 2
says '^unhealthy: scheduler on cp-2: the service is '

sed 's/^spec:/&\n  paused: true/' "$file" >"$file.new" && mv "$file.new" "$file"
site apply --yes
exits 1
says 'is paused'
write without >"$file"
site destroy
exits 1
site destroy --name another
exits 1
site destroy --name production
exits 0
for h in h1 h2 h3; do
  found=$(on $h 'ls -d /etc/windlass /opt/windlass /var/lib/etcd 2>/dev/null; ls /etc/systemd/system | grep -E "^(karmada|etcd)" || true')
  [ -z "$found" ] || broken "something is left on $h"
done
member_down
