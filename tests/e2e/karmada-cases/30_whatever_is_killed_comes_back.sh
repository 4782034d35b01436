. "$ROOT/tests/e2e/karmada-lib.sh"
for c in $components; do
  before=$(on h1 systemctl show -p MainPID --value "karmada-$c")
  on h1 systemctl kill -s KILL "karmada-$c"
  back() { [ "$(on h1 systemctl is-active "karmada-$c")" = active ] && [ "$(on h1 systemctl show -p MainPID --value "karmada-$c")" != "$before" ]; }
  eventually back
done
sleep 5
karmada status
exits 0
