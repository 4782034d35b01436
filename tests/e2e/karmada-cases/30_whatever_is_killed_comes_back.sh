. "$ROOT/tests/e2e/karmada-lib.sh"
pid() { on h1 systemctl show -p MainPID --value "karmada-$1"; }
runs() { [ "$(on h1 systemctl is-active "karmada-$1")" = active ]; }
back() { runs "$1" && [ "$(pid "$1")" != "$before" ]; }
for c in $components; do
  # The death of an API server may have ended those that it served.
  eventually runs "$c"
  before=$(pid "$c")
  killed=$SECONDS
  on h1 systemctl kill -s KILL "karmada-$c"
  eventually back "$c"
  echo "karmada-$c is back after $((SECONDS - killed)) s"
done
ready() { karmada status && [ "$code" = 0 ]; }
eventually ready
