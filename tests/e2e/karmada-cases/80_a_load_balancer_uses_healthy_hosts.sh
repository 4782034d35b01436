# Takes its turn: every third day, with stand-ins.
. "$ROOT/tests/e2e/karmada-lib.sh"
fresh
with_load_balancer
karmada site
exits 0
grep -q "server: https://$(vip):6443" "$kubeconfig" || broken "the kubeconfig leads elsewhere"
kubectl get --raw /readyz
karmada site
exits 0
nothing_changed
# Whose webhook is gone gets nobody, though its API server says that it is ready; requests fail until that is noticed.
# A stopped aggregated API server is left out, too; but the API servers share what they say of its API, so that requests for
# it fail now and then on every host for as long as it is gone and the API server beside it is not.
for c in webhook aggregated-apiserver; do
  out() { [ "$(balanced h1 h2)" != UP ] && [ "$(balanced h3 h2)" != UP ]; }
  in_again() { [ "$(balanced h1 h2)" = UP ] && [ "$(balanced h3 h2)" = UP ]; }
  client_begins
  sleep 2
  on h2 systemctl stop "karmada-$c"
  eventually out
  sleep 10
  on h2 systemctl start "karmada-$c"
  eventually in_again
  if [ $c = webhook ]; then failed_for_at_most 8; else client_ends; fi
done
# A run that was killed left a host drained: a plan says so, and the next run returns it.
on h1 "echo 'set server whole/h2 state drain' | socat - UNIX-CONNECT:/run/karmada-load-balancer/haproxy.sock"
karmada load-balancer --check
exits 0
recap h1 changed 1
recap h3 changed 0
karmada load-balancer
exits 0
[ "$(balanced h1 h2)" = UP ] || broken "h2 is still drained"
# The same for one that ended between new settings and the reload.
on h3 "sed -i 's/^./z/' /run/karmada-load-balancer/started-with"
karmada load-balancer --check
exits 0
recap h3 changed 1
karmada load-balancer
exits 0
karmada load-balancer --check
exits 0
nothing_changed
# New settings are validated, and taken up without ending a connection.
client_begins
karmada load-balancer -e load_balancer_check_seconds=2
exits 0
recap h1 changed 2
karmada load-balancer
exits 0
nobody_noticed
karmada load-balancer -e load_balancer_check_limit=never
exits 2
# A flag of everything is changed, one host after the other; with stand-ins that of the API server alone, to be done in time.
changed=(karmada_apiserver)
[ -n "${WINDLASS_STAND_INS:-}" ] || changed+=(karmada_aggregated_apiserver karmada_webhook kube_controller_manager karmada_controller_manager karmada_scheduler)
client_begins
# shellcheck disable=SC2046  # words
karmada karmada $(printf -- '-e %s_verbosity=1 ' "${changed[@]}")
exits 0
nobody_noticed
# The address moves when its host dies, and nobody is led there any more: requests fail until that is noticed.
for h in h1 h2 h3; do on "$h" ip -br address | matches "$(vip)/" && holder=$h; done
client_begins
sleep 5
hosts kill "$holder"
sleep 40
failed_for_at_most 10
hosts start "$holder"
eventually on "$holder" systemctl is-active karmada-apiserver
