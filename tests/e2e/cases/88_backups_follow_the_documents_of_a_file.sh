# shellcheck shell=bash
# Takes its turn: every third day.
# Without a place, windlass etcd backup takes the backups that the EtcdBackups in the deployment's own file describe: on this machine, in a
# bucket and on another host.
. "$ROOT/tests/e2e/bucket.sh"
fresh
d=$scratch/d
mkdir "$d"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=authority -keyout "$scratch/ca.key" -out "$d/ca.crt" 2>/dev/null
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=127.0.0.1 -keyout "$scratch/s3.key" -out "$scratch/s3.csr" 2>/dev/null
printf 'subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n' >"$scratch/s3.ext"
openssl x509 -req -in "$scratch/s3.csr" -CA "$d/ca.crt" -CAkey "$scratch/ca.key" -CAcreateserial -days 2 -extfile "$scratch/s3.ext" -out "$scratch/s3.crt" 2>/dev/null
trap 's3_down; rm -rf "$scratch" || true' EXIT
s3_up "$scratch/s3.crt" "$scratch/s3.key"
export XDG_CACHE_HOME=$scratch/cache
age-keygen -o "$scratch/age.key" 2>/dev/null
address() { grep -oE "^$1 ansible_host=[0-9.]+" "$inventory" | cut -d= -f2; }
ssh-keygen -F "$(address h3)" -f "$state/known_hosts" | grep ' ssh-ed25519 ' >"$scratch/key-of-h3"
fingerprint=$(ssh-keygen -lf "$scratch/key-of-h3" | cut -d' ' -f2 | head -1)
[[ $fingerprint == SHA256:* ]] || broken "h3 has no fingerprint"
# backup NAME FIELDS: a document.
backup() { printf -- '---\napiVersion: windlass.dev/v1alpha1\nkind: EtcdBackup\nmetadata: {name: %s}\nspec: {deployment: prod, %s}\n' "$1" "$2"; }
{
  cat <<DOCUMENT
apiVersion: windlass.dev/v1alpha1
kind: KarmadaDeployment
metadata: {name: prod}
spec:
  bundle: $ROOT/target/etcd/3.5
  ssh: {user: root, privateKey: {file: $state/id_ed25519}, knownHosts: [$state/known_hosts]}
  hosts: [{name: h1, address: $(address h1)}]
  controlPlane: {hosts: [h1]}
  etcd: {managed: {hosts: [h1]}}
DOCUMENT
  backup here 'keep: 1, rehearse: true, storage: {path: backups}'
  backup bucket "recipients: [$(age-keygen -y "$scratch/age.key")], storage: {s3: {endpoint: '$s3_url', bucket: backups, prefix: prod, caCert: {file: ca.crt}, accessKey: {env: ID_OF_THE_BUCKET}, secretKey: {file: secret}}}"
  backup other "storage: {ssh: {address: $(address h3), user: root, fingerprint: '$fingerprint', privateKey: {file: $state/id_ed25519}, directory: /root/prod}}"
  backup later 'suspend: true, storage: {path: later}'
} >"$d/prod.yaml"
export ID_OF_THE_BUCKET=$AWS_ACCESS_KEY_ID
echo "$AWS_SECRET_ACCESS_KEY" >"$d/secret"
id=$AWS_ACCESS_KEY_ID key=$AWS_SECRET_ACCESS_KEY
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
back_up() { windlass etcd backup -f "$d/prod.yaml" --playbooks "$ROOT/playbooks" "$@"; }
windlass playbook -i "$d/prod.yaml" "$ROOT/playbooks/etcd.yml"
exits 0

echo "== each of them is taken as it says"
back_up
exits 0
says 'EtcdBackup later is suspended: skipped'
says "^$d/backups/[0-9TZ]+-r[0-9]+$"
says '^  restored: [0-9]+ keys'
says '^s3://backups/prod/[0-9TZa-f]+-r[0-9]+-[0-9a-f]{8}$'
says '^  encrypted: age'
says "^ssh://root@$(address h3)/root/prod/[0-9TZ]+-r[0-9]+$"
[ ! -e "$d/later" ] || broken "a suspended backup was taken"
! grep -qF "$key" "$output" || broken "a secret is in the output"
[ "$(on h3 'ls /root/prod | wc -l')" = 1 ] || broken "h3 has no backup"
AWS_ACCESS_KEY_ID=$id AWS_SECRET_ACCESS_KEY=$key AWS_ENDPOINT_URL_S3=$s3_url AWS_CA_BUNDLE=$d/ca.crt windlass etcd backups s3://backups/prod \
  --identity "$scratch/age.key"
exits 0
says ' yes, decrypted$'

echo "== a chosen one, also if it is suspended; the newest is kept"
back_up --only here --only later
exits 0
[ "$(find "$d/backups" "$d/later" -mindepth 1 -maxdepth 1 -name '*-r*' | wc -l)" = 2 ] || broken "there are other backups"
back_up --only nightly
exits 1
says 'prod.yaml has no EtcdBackup nightly'
says 'hint: it has here, bucket, other, later'
back_up --keep 3
exits 2
back_up --recipient age1x
exits 2
back_up --s3-encryption AES256
exits 1
says 'need a place on the command line'
sed 's#{path: backups}#{path: "s3://backups/here"}#' "$d/prod.yaml" >"$d/other.yaml"
windlass etcd backup -f "$d/other.yaml" --playbooks "$ROOT/playbooks"
[ "$code" != 0 ] || broken "a bucket was taken for a directory"
says 'a path of snapshots must be a directory'
rm "$d/other.yaml"

echo "== one that fails does not keep the others from being taken, and is no success"
echo wrong >"$d/secret"
back_up
exits 2
says 'error: EtcdBackup bucket: cannot list s3://backups/prod/: the server responded 403'
says "^$d/backups/[0-9TZ]+-r[0-9]+$"
[ "$(on h3 'ls /root/prod | wc -l')" = 2 ] || broken "h3 has not the second backup"
back_up --only bucket
exits 1
rm "$d/secret"
back_up --only here --only bucket
exits 2
says "^$d/backups/[0-9TZ]+-r[0-9]+$"
says "EtcdBackup bucket: secretKey: the file $d/secret: "
sed -i "s#$fingerprint#SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA#" "$d/prod.yaml"
back_up --only other
exits 1
[ "$(on h3 'ls /root/prod | wc -l')" = 2 ] || broken "h3 has a third backup"
in_no_record "$key"
