# Takes its turn: every third day, with stand-ins.
. "$ROOT/tests/e2e/karmada-lib.sh"
a_control_plane
# The webhook of a host: status says so, a run starts it.
on h2 systemctl stop karmada-webhook
karmada status
exits 2
says 'webhook +h2 +inactive +no'
says '^unhealthy: webhook on h2: the service is inactive'
karmada karmada
exits 0
recap h1 changed 0
# An API server that is down, the same; a dry run, which asks the first one, says so, too.
on h1 systemctl stop karmada-apiserver
karmada status
exits 2
says 'apiserver +h1 +inactive +no'
karmada karmada --check
exits 0
# More than the server: a component that is just starting again counts, too.
says '^h1 +: .*changed=[1-9]'
says 'the API server of h1 is not started'
karmada karmada
exits 0
karmada status
exits 0
