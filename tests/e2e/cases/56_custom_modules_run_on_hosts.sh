# shellcheck shell=bash
fresh
mkdir "$scratch/library"
cat >"$scratch/library/asked" <<'END'
#!/bin/sh
# WANT_JSON
grep -q '"_ansible_check_mode": *true' "$1" && check=true || check=false
name=$(sed -n 's/.*"name": *"\([^"]*\)".*/\1/p' "$1")
mode=$(stat -c %a "$1")
printf '{"changed": true, "user": "%s", "name": "%s", "mode": "%s", "check": %s}\n' "$(id -un)" "$name" "$mode" "$check"
END
printf '#!/bin/sh\n. "$1"\nprintf '"'"'{"user": "%%s", "name": "%%s"}\\n'"'"' "$(id -un)" "$name"\n' >"$scratch/library/words.sh"
cat >"$scratch/compiled.rs" <<'END'
fn main() {
    let path = std::env::args().nth(1).expect("a file");
    let asked = std::fs::read_to_string(&path).expect("its text");
    println!("{{\"asked\": {}, \"bytes\": {}}}", asked.contains("\"name\""), asked.len());
}
END
rustc -C target-feature=+crt-static -C strip=symbols -O -o "$scratch/library/compiled" "$scratch/compiled.rs"
cat >"$scratch/own.yml" <<'END'
- hosts: etcd
  gather_facts: false
  become: true
  tasks:
    - asked: {name: "{{ inventory_hostname }}"}
      register: asked
      failed_when: asked.user != 'root' or asked.name != inventory_hostname or asked.mode != '600' or asked.check != ansible_check_mode
    - asked: {name: x}
      vars: {ansible_become: false}
      register: asked
      failed_when: asked.user != 'deploy'
    - words: name="two words"
      become_user: nobody
      register: words
      failed_when: words.user != 'nobody' or words.name != 'two words'
    - compiled: {name: y}
      register: compiled
      failed_when: not compiled.asked
END
# Scripts are run where programs may not be; a program says that it was not.
for h in h1 h2 h3; do for at in /tmp /var/tmp /dev/shm /home /root; do hosts noexec "$h" "$at"; done; done
windlass playbook -i "$state/inventory-deploy.ini" "$scratch/own.yml" --check
exits 2
for h in h1 h2 h3; do recap "$h" ok 3; done
says 'fatal: \[h1\]: the module "compiled" printed no JSON object.*Permission denied'
for h in h1 h2 h3; do for at in /tmp /var/tmp /dev/shm /home /root; do hosts unmount "$h" "$at"; done; done
# Nothing is left behind.
trees >"$scratch/before"
windlass playbook -i "$state/inventory-deploy.ini" "$scratch/own.yml"
exits 0
for h in h1 h2 h3; do recap "$h" ok 4; recap "$h" changed 2; done
trees >"$scratch/after"
same_trees "$scratch/before" "$scratch/after"
