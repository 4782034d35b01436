. "$ROOT/tests/e2e/karmada-lib.sh"
a_control_plane
# A bundle with one program less; a directory without a manifest is one, too.
cp -rs "$WINDLASS_BUNDLE" "$scratch/bundle"
rm -f "$scratch/bundle/manifest.yaml"
with_bundle() { WINDLASS_BUNDLE=$scratch/bundle karmada karmada; }
scheduler=$(find "$scratch/bundle" -name karmada-scheduler)
original=$(readlink -f "$scheduler")
rm "$scheduler"
with_bundle
exits 2
says 'has no karmada-scheduler'
nothing_touched
# For another processor, as far as the header of the ELF file goes.
cp "$original" "$scheduler"
printf '\267' | dd of="$scheduler" bs=1 seek=18 conv=notrunc 2>/dev/null
with_bundle
exits 2
says 'karmada-scheduler.*arm64'
nothing_touched
# One byte has changed since the bundle was made.
cp "$original" "$scheduler"
windlass bundle create --from "$scratch/bundle"
exits 0
printf x | dd of="$scheduler" bs=1 seek=4096 conv=notrunc 2>/dev/null
with_bundle
exits 2
says 'karmada-scheduler in the bundle .* has changed'
nothing_touched
# One that the manifest names is gone.
rm "$scheduler"
with_bundle
exits 2
says 'karmada-scheduler is missing from the bundle'
nothing_touched
