# Takes long: some 20 minutes, with stand-ins only when named.
. "$ROOT/tests/e2e/karmada-lib.sh"
fresh
with_load_balancer
karmada site
exits 0

# Every certificate is renewed, one component after the other, one host at a time.
karmada certificates --check
exits 0
says 'h3 +/etc/windlass/karmada/apiserver/pki/apiserver.crt +36[45] '
for h in h1 h2 h3; do on "$h" sha256sum /etc/windlass/karmada/{apiserver/pki/apiserver,webhook/pki/karmada-webhook,scheduler/pki/scheduler-client}.crt >"$scratch/$h.before"; done
admin=$(sha256sum <"$kubeconfig")
begun=$SECONDS
client_begins
karmada certificates -e karmada_certificate_days=500 -e karmada_certificate_renew_days=400
exits 0
echo "the renewal took $((SECONDS - begun)) s"
nobody_noticed
for h in h1 h2 h3; do
  on "$h" sha256sum /etc/windlass/karmada/{apiserver/pki/apiserver,webhook/pki/karmada-webhook,scheduler/pki/scheduler-client}.crt >"$scratch/$h.after"
  [ "$(sort "$scratch/$h.before" "$scratch/$h.after" | uniq -d | wc -l)" = 0 ] || broken "a certificate of $h is as before"
done
found=$(sha256sum <"$kubeconfig")
[ "$found" != "$admin" ] || broken "the admin's kubeconfig is as before"
kubectl get --raw /readyz
karmada certificates
exits 0
nothing_changed
karmada status
exits 0
