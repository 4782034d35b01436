. "$ROOT/tests/e2e/karmada-lib.sh"
a_control_plane
pid() { on h1 systemctl show -p MainPID --value "karmada-$1"; }
runs() { [ "$(on h1 systemctl is-active "karmada-$1")" = active ]; }
# Another process, and it is active since: systemd may not have noticed the end of the first yet.
back() {
  local now
  now=$(pid "$1")
  [ "$now" != 0 ] && [ "$now" != "$before" ] && runs "$1"
}
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
