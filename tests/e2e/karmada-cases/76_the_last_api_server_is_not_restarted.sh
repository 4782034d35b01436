# Continues with the control plane of the case before. etcd stays whole; only what serves the API dies.
. "$ROOT/tests/e2e/karmada-lib.sh"
a_control_plane
begun_at() { on "$1" systemctl show -p ExecMainStartTimestampMonotonic --value "karmada-$2"; }
ready() { kubectl_at "$1" get --raw /readyz; }

# h2 and h3 do not serve, and the limit hides that: h1 keeps running. A dead host counts as one that does not serve.
on h2 systemctl stop karmada-apiserver
hosts kill h3
before=$(begun_at h1 apiserver)
karmada karmada --limit h1 -e karmada_apiserver_verbosity=1
exits 2
says 'h1 has the last API server of karmada that serves; the API servers of h2, h3 do not'
says 'hint: run status.yml, start what is down there'
[ "$(begun_at h1 apiserver)" = "$before" ] || broken "the last API server was restarted"
ready h1
# It is not removed either.
karmada_playbook remove-host -e host=h1 -e karmada_endpoint=h2 --limit h1
exits 2
says 'the hosts that stay have no healthy apiserver'
ready h1

# What does not serve is restored whatever the others do.
karmada karmada --limit h2
exits 0
ready h2
hosts start h3
eventually on h3 systemctl is-active karmada-apiserver
