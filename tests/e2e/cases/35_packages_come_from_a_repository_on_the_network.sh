# shellcheck shell=bash
# The host has no source of packages but the two that this case makes, signs and serves on the hosts' own network.
hosts reset h1
address=$(hosts list | awk '$1 == "h1" {print $2}')
bridge=${address%.*}.1
on h1 'rm -rf /etc/apt/sources.list /var/lib/apt/lists/*'
repository=$scratch/repository
mkdir -p "$repository/first" "$repository/second"
export GNUPGHOME=$scratch/gnupg
mkdir -m 0700 "$GNUPGHOME"

# deb DIRECTORY NAME VERSION: a package with one file and one configuration file.
deb() {
  local root=$scratch/build
  rm -rf "$root"
  mkdir -p "$root/DEBIAN" "$root/usr/share/$2" "$root/etc"
  echo "$3" >"$root/usr/share/$2/version"
  echo "of $2" >"$root/etc/$2.conf"
  echo "/etc/$2.conf" >"$root/DEBIAN/conffiles"
  printf 'Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\nDescription: for a test\n' "$2" "$3" >"$root/DEBIAN/control"
  dpkg-deb --root-owner-group --build "$root" "$repository/$1/$2_$3_all.deb" >/dev/null
}

# publish DIRECTORY: its lists, signed with the throw-away key if there is gpg.
publish() {
  local d=$repository/$1 file
  for file in "$d"/*.deb; do
    dpkg-deb --field "$file"
    printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "$(basename "$file")" "$(stat -c %s "$file")" "$(sha256sum "$file" | cut -d' ' -f1)"
  done >"$d/Packages"
  printf 'Origin: windlass\nDate: %s\nSHA256:\n %s %s Packages\n' "$(date -Ru)" "$(sha256sum "$d/Packages" | cut -d' ' -f1)" "$(stat -c %s "$d/Packages")" >"$d/Release"
  ! $signed || gpg --batch --yes --clearsign -o "$d/InRelease" "$d/Release" 2>/dev/null
}

signed=false
[ -z "${TESTS_COMPLETE:-}" ] || command -v gpg >/dev/null || broken "this machine has no gpg to sign with"
if command -v gpg >/dev/null; then
  gpg --batch --passphrase '' --quick-gen-key 'windlass test <nobody@example.org>' ed25519 2>/dev/null
  gpg --armor --export >"$repository/first/key.asc"
  signed=true
fi
deb first wl-hello 1.0
deb first wl-other 1.0
deb second wl-second 1.0
publish first
publish second
python3 -m http.server --bind "$bridge" --directory "$repository" 8459 >"$scratch/server.log" 2>&1 &
server=$!
trap 'kill $server; gpgconf --kill gpg-agent 2>/dev/null; rm -rf "$scratch"' EXIT
for _ in $(seq 600); do if (exec 3<>"/dev/tcp/$bridge/8459") 2>/dev/null; then break; fi; sleep 0.1; done

cat >"$scratch/packages.yml" <<EOF
- hosts: h1
  gather_facts: false
  vars:
    base: http://$bridge:8459
  tasks:
    - deb822_repository:
        name: first packages
        uris: '{{ base }}/first'
        suites: ./
        signed_by: "{{ base + '/first/key.asc' if $signed else omit }}"
        trusted: '{{ omit if $signed else true }}'
      register: first
    - apt: { update_cache: true }
      when: first is changed
    - apt_repository: { repo: 'deb [trusted=yes] {{ base }}/second ./', filename: second }
    - apt: { name: ['wl-hello{{ wanted | default("=1.0") }}', 'wl-other>=1.0'] }
    - package: { name: wl-second }
    - package_facts:
    - debug: { msg: "{{ ansible_facts.packages['wl-hello'][0] }}" }
EOF
mkdir "$scratch/more"
play() { windlass playbook -i "$inventory" "$@"; exits 0; }

# On the empty host nothing is known of the packages, so check mode stops where one is asked for, having touched nothing.
tree h1 >"$scratch/before"
windlass playbook -i "$inventory" --check "$scratch/packages.yml"
tree h1 >"$scratch/after"
same_trees "$scratch/before" "$scratch/after"

play "$scratch/packages.yml"
recap h1 changed 5
says '"version": "1.0"'
says '"origin": "windlass"'
[ "$(on h1 cat /usr/share/wl-hello/version /usr/share/wl-second/version | tr '\n' ' ')" = "1.0 1.0 " ] || broken "the packages are not there"
play "$scratch/packages.yml"
recap h1 changed 0

# A newer version is there: check mode says so and touches nothing, then it is installed once.
deb first wl-hello 2.0
publish first
one() { printf -- '- hosts: h1\n  gather_facts: false\n  tasks:\n    - %s\n' "$1" >"$scratch/more/$2.yml"; }
one "apt: { update_cache: true }" update
one "apt: { name: wl-hello, state: latest, update_cache: true }" latest
one "apt: { upgrade: dist }" upgrade
one "apt: { name: wl-hello=1.0, allow_downgrade: true, allow_change_held_packages: true }" back
one "package: { name: [wl-hello, wl-second], state: absent }" remove
one "apt: { name: [wl-hello, wl-other], state: absent, purge: true }" purge
play "$scratch/more/update.yml"
tree h1 >"$scratch/before"
play --check "$scratch/more/upgrade.yml"
recap h1 changed 1
play --check "$scratch/more/latest.yml"
recap h1 changed 1
tree h1 >"$scratch/after"
same_trees "$scratch/before" "$scratch/after"
play "$scratch/more/latest.yml"
recap h1 changed 1
play "$scratch/more/latest.yml"
recap h1 changed 0
play "$scratch/more/upgrade.yml"
recap h1 changed 0
[ "$(on h1 cat /usr/share/wl-hello/version)" = 2.0 ] || broken "wl-hello is not 2.0"

# A package on hold changes only where the task says that it may.
on h1 apt-mark hold wl-hello
play "$scratch/more/back.yml"
recap h1 changed 1
on h1 apt-mark unhold wl-hello
[ "$(on h1 cat /usr/share/wl-hello/version)" = 1.0 ] || broken "wl-hello is not 1.0 again"

# Removed, then purged; a second time there is nothing to do.
tree h1 >"$scratch/before"
play --check "$scratch/more/remove.yml"
recap h1 changed 1
tree h1 >"$scratch/after"
same_trees "$scratch/before" "$scratch/after"
play "$scratch/more/remove.yml"
recap h1 changed 1
play "$scratch/more/remove.yml"
recap h1 changed 0
on h1 '[ ! -e /usr/share/wl-hello/version ] && [ -e /etc/wl-hello.conf ]' || broken "remove did too little, or too much"
play "$scratch/more/purge.yml"
recap h1 changed 1
on h1 '[ ! -e /etc/wl-other.conf ]' || broken "purge left a configuration file"

# A source that cannot be used is taken back, and both sources go.
one "apt_repository: { repo: 'deb http://$bridge:8459/none ./', update_cache_retries: 1 }" broken
windlass playbook -i "$inventory" "$scratch/more/broken.yml"
exits 2
on h1 '[ "$(ls /etc/apt/sources.list.d)" = "first-packages.sources
second.list" ]' || broken "the broken source was left: $(on h1 ls /etc/apt/sources.list.d)"
one "deb822_repository: { name: first packages, state: absent }" gone
one "apt_repository: { repo: 'deb [trusted=yes] http://$bridge:8459/second ./', state: absent }" gone2
for name in gone gone2; do
  play "$scratch/more/$name.yml"
  recap h1 changed 1
  play "$scratch/more/$name.yml"
  recap h1 changed 0
done
on h1 '[ -z "$(ls /etc/apt/sources.list.d /etc/apt/keyrings | grep -v :)" ]' || broken "sources or keys were left"
