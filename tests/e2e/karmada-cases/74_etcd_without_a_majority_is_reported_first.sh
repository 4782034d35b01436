. "$ROOT/tests/e2e/karmada-lib.sh"
a_control_plane
on h2 systemctl stop etcd
on h3 systemctl stop etcd
karmada karmada -e '{"karmada_scheduler_extra_args": {"kube-api-burst": 78}}'
exits 2
says 'etcd.*(majority|quorum|leader)'
nothing_touched
on h2 systemctl start etcd
on h3 systemctl start etcd
eventually kubectl get --raw /readyz
karmada karmada
exits 0
