# Takes its turn: every third day.
# shellcheck shell=bash
# bundle_signers is set: plan, apply and the playbook refuse a bundle without a good signature before they touch a host.
fresh
trees >"$scratch/before"
mkdir "$scratch/etcd" "$scratch/lost"
cp "$ROOT"/target/etcd/3.5/* "$scratch/etcd/"
windlass bundle create --from "$scratch/etcd"
exits 0
for key in maker other; do ssh-keygen -q -t ed25519 -N '' -C '' -f "$scratch/$key"; done
echo "maker@example.org namespaces=\"windlass-bundle\" $(cat "$scratch/maker.pub")" >"$scratch/signers"
: >"$scratch/revoked"
export WINDLASS_BUNDLE_SIGNERS=$scratch/signers WINDLASS_BUNDLE_REVOKED=$scratch/revoked
a=(-i "$inventory" -e "etcd_bundle=$scratch/etcd")
refuses() { # TEXT: all three
  windlass plan "${a[@]}" --playbooks "$ROOT/playbooks"
  exits 1
  says "$1"
  windlass apply "${a[@]}" --playbooks "$ROOT/playbooks" --yes
  [ "$code" != 0 ] || broken "apply installed it"
  says "$1"
  # What an inventory or a person says in variables changes nothing.
  windlass playbook "${a[@]}" -e bundle_signers= -e WINDLASS_BUNDLE_SIGNERS= "$ROOT/playbooks/etcd.yml"
  exits 2
  says "$1"
}
refuses 'is not signed, and bundle_signers demands a signature'
windlass bundle sign "$scratch/etcd" --key "$scratch/other"
exits 0
refuses 'the key is not that of an allowed signer'
trees >"$scratch/after"
same_trees "$scratch/before" "$scratch/after"

windlass bundle sign "$scratch/etcd" --key "$scratch/maker"
exits 0
windlass bundle verify "$scratch/etcd"
exits 0
says '^good     maker@example.org  ssh-ed25519 SHA256:[^ ]+  manifest.yaml.2.sig$'
says '^refused  ssh-ed25519 SHA256:[^ ]+  manifest.yaml.sig: the key is not that of an allowed signer$'
windlass plan "${a[@]}" --playbooks "$ROOT/playbooks"
exits 0
says '^etcd: 3 hosts$'
windlass apply "${a[@]}" --playbooks "$ROOT/playbooks" --yes
exits 0
healthy
on h1 cat /opt/windlass/etcd/etcd/current/etcd | cmp - "$scratch/etcd/etcd" || broken "h1 has another etcd than the bundle"

# What comes afterwards: another program, with a manifest to fit it; a revoked key.
printf x >>"$scratch/etcd/etcdutl"
windlass apply "${a[@]}" --playbooks "$ROOT/playbooks" --yes
[ "$code" != 0 ] || broken "a program was changed after it was signed"
says 'etcdutl in the bundle .* has changed'
mv "$scratch/etcd"/*.sig "$scratch/lost/"
windlass bundle create --from "$scratch/etcd"
exits 0
mv "$scratch/lost"/*.sig "$scratch/etcd/"
windlass apply "${a[@]}" --playbooks "$ROOT/playbooks" --yes
[ "$code" != 0 ] || broken "a manifest was changed after it was signed"
says 'the key did not make it over this manifest'
cp "$ROOT"/target/etcd/3.5/etcdutl "$scratch/etcd/"
rm "$scratch/etcd"/*.sig
windlass bundle create --from "$scratch/etcd" --to "$scratch/etcd.tar.zst"
exits 0
windlass bundle sign "$scratch/etcd.tar.zst" --key "$scratch/maker"
exits 0
a=(-i "$inventory" -e "etcd_bundle=$scratch/etcd.tar.zst")
windlass apply "${a[@]}" --playbooks "$ROOT/playbooks" --yes
exits 0
says '^Nothing to do\.$'
cat "$scratch/maker.pub" >"$scratch/revoked"
windlass apply "${a[@]}" --playbooks "$ROOT/playbooks" --yes
[ "$code" != 0 ] || broken "a revoked key counted"
says 'the key is revoked'
healthy
