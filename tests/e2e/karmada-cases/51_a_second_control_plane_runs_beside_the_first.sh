# Needs Karmada's own programs.
# With an etcd of its own, on the host of the case before.
. "$ROOT/tests/e2e/karmada-lib.sh"
one_host
second=(-e karmada_instance=second -e karmada_port_offset=30 -e etcd_instance=second-etcd -e etcd_port_offset=30)
second_kubectl() { kubeconfig=$state/credentials/second-admin.kubeconfig kubectl "$@"; }
karmada site "${second[@]}"
exits 0
for c in $components; do
  for instance in karmada second; do
    [ "$(on h1 systemctl is-active "$instance-$c")" = active ] || broken "$instance-$c is not active"
  done
  [[ $(on h1 systemctl show -p User --value "second-$c") == second-* ]] || broken "second-$c runs as a user of the first"
done
[ "$(on h1 systemctl is-active etcd second-etcd | xargs)" = 'active active' ] || broken "not both etcd run"
eventually second_kubectl get clusters
second_kubectl create configmap only-here
kubectl create configmap only-there
! kubectl get configmap only-here || broken "both are the same control plane"
! second_kubectl get configmap only-there || broken "both are the same control plane"
# Neither run changes what is the other's.
karmada site
exits 0
recap h1 changed 0
karmada site "${second[@]}"
exits 0
recap h1 changed 0
# Nor does a reset.
karmada karmada-reset "${second[@]}" -e confirm_instance=second
exits 0
karmada etcd-reset "${second[@]}" -e confirm_cluster_name=second-etcd
exits 0
kubectl get configmap only-there
! on h1 'ls -d /opt/windlass/second* /etc/windlass/second /etc/second-etcd /var/lib/second-etcd 2>/dev/null' || broken "something of the second is left"
! on h1 'ls /etc/systemd/system /etc/passwd | grep second; grep second- /etc/passwd' || broken "something of the second is left"
