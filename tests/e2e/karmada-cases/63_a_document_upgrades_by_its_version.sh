# Takes its turn: every third day, with stand-ins.
. "$ROOT/tests/e2e/karmada-lib.sh"
# A bundle with two releases of Karmada: the field `version` chooses, `upgrade` changes to it, and `rollback` goes back.
[ -n "${WINDLASS_BUNDLE_BEFORE:-}" ] || cannot_run "WINDLASS_BUNDLE_BEFORE names no bundle"
fresh
file=$state/version.yaml
both=$scratch/both
new=$(basename "$WINDLASS_BUNDLE"/karmada-*) old=$(basename "$WINDLASS_BUNDLE_BEFORE"/karmada-*)
cp -al "$WINDLASS_BUNDLE" "$both"
cp -al "$WINDLASS_BUNDLE_BEFORE/$old" "$both/"
rm -f "$both/manifest.yaml"
new=${new#karmada-} old=${old#karmada-}
minor() { cut -d. -f1,2 <<<"$1"; }
write() { skeleton h1 | sed -e "s#$WINDLASS_BUNDLE#$both#" -e "s/^  # version: .*/  version: \"$1\"/" >"$file"; }
all_run() { local c; for c in webhook aggregated-apiserver controller-manager scheduler; do [ "$(runs h1 $c)" = "$1" ] || broken "$c is $(runs h1 $c), not $1"; done; }

write "$(minor "$old")"
site apply --yes
exits 0
all_run "$old"

# An apply does not change the version, and says what does.
write "$(minor "$new")"
site apply --yes
exits 1
says "the bundle has Karmada $new .*Run windlass upgrade to change versions"
all_run "$old"
# One that the bundle does not have.
write 1.77
site plan
exits 1
says '1\.77'

write "$(minor "$new")"
site upgrade --check
exits 0
says "upgrading to Karmada $new"
all_run "$old"
site upgrade --yes
exits 0
all_run "$new"
site apply --yes
exits 0
says '^Nothing to do\.$'

site rollback --yes
exits 0
all_run "$old"
write "$(minor "$old")"
site apply --yes
exits 0
says '^Nothing to do\.$'
