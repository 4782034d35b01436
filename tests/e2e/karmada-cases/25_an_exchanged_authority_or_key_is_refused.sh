# Continues with the control plane of the case before.
. "$ROOT/tests/e2e/karmada-lib.sh"
a_control_plane
credentials=$state/credentials
rm -rf "$scratch/kept"
cp -a "$credentials" "$scratch/kept"
restore() { rm -rf "$credentials" && cp -a "$scratch/kept" "$credentials"; }
trap 'restore; rm -rf "$scratch"' EXIT
installed() { for h in h1 h2 h3; do on "$h" 'find /etc/windlass /etc/etcd -type f -exec sha256sum {} +' | sort | sed "s/^/$h /"; done; }
installed >"$scratch/installed"
untouched() {
  exits 2
  does_not_say '^h[1-3] .*changed=[1-9]'
  installed | diff "$scratch/installed" - || broken "a host was changed"
}
files=(karmada/ca karmada/front-proxy/ca karmada/signing-ca etcd/ca)

# All of them exchanged for others with the same names, as another machine or an empty directory of credentials would make
# them. The way out is said; nothing of it reaches a host, in check mode neither.
for f in "${files[@]}"; do
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -keyout "$credentials/$f.key" -out "$credentials/$f.crt" \
    -subj "/$(openssl x509 -in "$scratch/kept/$f.crt" -noout -subject -nameopt RFC2253 | sed 's/^subject=//')" 2>/dev/null
done
openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out "$credentials/karmada/sa.key"
sed -i "s|secret: .*|secret: $(head -c 32 /dev/urandom | base64)|" "$credentials/karmada/encryption-config.yaml"
for option in --check --diff; do
  karmada karmada "$option"
  untouched
  for f in "${files[@]}"; do says "/$f.crt \\(CN=[^)]*\\) is not the CA in use \\(CN=[^)]*\\) by h1, h2, h3"; done
  says 'karmada/sa.key differs from the key in use by h1, h2, h3'
  says 'karmada/encryption-config.yaml has other keys than the file in use by h1, h2, h3'
  says 'hint: restore the files from a backup'
  does_not_say "$(sed -n 's/.*secret: //p' "$credentials/karmada/encryption-config.yaml")"
done
restore
# Keys are found by their names, and by who encrypts with them.
for change in 's/name: key1/name: prod1/' 's/secretbox:/aesgcm:/'; do
  sed -i "$change" "$credentials/karmada/encryption-config.yaml"
  ! cmp -s "$credentials/karmada/encryption-config.yaml" "$scratch/kept/karmada/encryption-config.yaml" || broken "nothing was changed"
  karmada karmada --check
  untouched
  says 'karmada/encryption-config.yaml has other keys than the file in use by h1, h2, h3'
  restore
done
for f in "${files[@]}"; do
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -keyout "$credentials/$f.key" -out "$credentials/$f.crt" \
    -subj "/$(openssl x509 -in "$scratch/kept/$f.crt" -noout -subject -nameopt RFC2253 | sed 's/^subject=//')" 2>/dev/null
done
# What takes the same files to the hosts refuses them, too.
for playbook in certificates load-balancer; do
  karmada "$playbook"
  untouched
  says 'is not the CA in use'
done
restore

# All of them missing: nothing is made in their place, though most hosts are outside of the limit.
for f in "${files[@]}"; do rm "$credentials/$f.crt" "$credentials/$f.key"; done
rm "$credentials/karmada/sa.key" "$credentials/karmada/sa.pub" "$credentials/karmada/encryption-config.yaml"
karmada karmada --limit h1
untouched
for f in "${files[@]}"; do says "/$f.crt is missing on the controller, and in use by h1, h2, h3"; done
for f in sa.key encryption-config.yaml; do says "/$f is missing on the controller, and in use by h1, h2, h3"; done
[ ! -e "$credentials/karmada/ca.crt" ] || broken "an authority was made"
restore

# The same key in a renewed certificate is the same authority; a key may be added to the encryption configuration.
openssl x509 -in "$credentials/karmada/ca.crt" -signkey "$credentials/karmada/ca.key" -days 3650 -out "$scratch/renewed.crt" 2>/dev/null
cp "$scratch/renewed.crt" "$credentials/karmada/ca.crt"
sed -i 's|secret: .*|&\n            - name: key2\n              secret: '"$(head -c 32 /dev/urandom | base64)"'|' "$credentials/karmada/encryption-config.yaml"
sed -i '/identity: {}/d' "$credentials/karmada/encryption-config.yaml"
karmada load-balancer --check
exits 0
restore
# What only few files on the hosts differ from is repaired, not refused.
on h2 'cp -p /etc/windlass/karmada/scheduler/pki/ca.crt /root/ca.crt && echo >/etc/windlass/karmada/scheduler/pki/ca.crt'
karmada load-balancer --check
on h2 mv /root/ca.crt /etc/windlass/karmada/scheduler/pki/ca.crt
exits 0
