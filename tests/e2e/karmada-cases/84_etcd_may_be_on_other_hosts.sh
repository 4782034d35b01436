# Takes its turn: every third day, with stand-ins.
. "$ROOT/tests/e2e/karmada-lib.sh"
# Layouts on which the control plane and etcd share some hosts or none. Stacked: case 20. On one host: case 79, and 50 with real
# programs. External: case 52, with real programs. What an API server knows of etcd in each layout: tests/roles.rs.
fresh
hosts reset h4 &
hosts reset h5
wait $! || broken "h4 does not come back"
file=$state/layout.yaml
# layout HOSTS CONTROL-PLANE ETCD
layout() {
  # shellcheck disable=SC2086  # several hosts
  skeleton $1 | sed -e "/^  controlPlane:/,/^  etcd:/s/hosts: .*/hosts: [$2]/" -e "/managed:/,\$s/hosts: .*/hosts: [$3]/" >"$file"
}
play() { local playbook=$1; shift; windlass playbook -i "$file" ${WINDLASS_STAND_INS:+-e "@$WINDLASS_STAND_INS"} "$@" "$ROOT/playbooks/$playbook.yml"; }
settled() {
  site plan
  exits 0
  says '^Nothing to do\.$'
  site status
  exits 0
}
etcd_servers() { on "$1" sed -n "'s/.*--etcd-servers=\([^\"]*\)\".*/\1/p'" /etc/systemd/system/karmada-apiserver.service; }
url() { echo "https://$(address_of "$1"):2379"; }

# Dedicated: windlass reaches the host of etcd at another address than the control plane does.
on h5 "ip address replace $(address_of h5 | sed 's/[.][0-9]*$/.155/')/24 dev \$(ip -o -4 route show default | awk '{print \$5}')"
sed -n "s/^\[\?$(address_of h5)\b/$(address_of h5 | sed 's/[.][0-9]*$/.155/')/p" "$state/known_hosts" >"$scratch/known_hosts"
cat "$scratch/known_hosts" >>"$state/known_hosts"
layout 'h4 h5' cp-1 cp-2
sed -i "s/$(address_of h5)/$(address_of h5 | sed 's/[.][0-9]*$/.155/')/" "$file"
site plan
exits 0
site apply --yes
exits 0
[ "$(etcd_servers h4)" = "$(url h5)" ] || broken "the API server looks for etcd at $(etcd_servers h4)"
settled
play certificates
exits 0
says 'cp-2 +/etc/etcd/pki/server\.crt'
recap cp-1 changed 0
play upgrade --check
exits 0
site destroy --name production
exits 0

# Partly shared: a healthy host leaves the control plane, and its etcd member stays.
layout 'h1 h2' 'cp-1, cp-2' cp-2
site apply --yes
exits 0
[ "$(etcd_servers h1)" = "$(url h2)" ] || broken "the API server looks for etcd at $(etcd_servers h1)"
site remove-host cp-1 --yes
exits 2
says 'clients reach the API through cp-1'
on h1 systemctl stop karmada-scheduler
site remove-host cp-2 --yes
exits 2
says 'the hosts that stay have no healthy scheduler'
on h1 systemctl start karmada-scheduler
site remove-host cp-2 --yes
exits 0
layout 'h1 h2' cp-1 cp-2
site apply --yes
exits 0
settled
found=$(on h2 'ls /etc/systemd/system | grep karmada- || true')
[ -z "$found" ] || broken "components are left on h2"
[ "$(on h2 systemctl is-active etcd)" = active ] || broken "etcd does not run"
[ "$(kubectl get --raw /readyz)" = ok ] || broken "the API server is not ready"
