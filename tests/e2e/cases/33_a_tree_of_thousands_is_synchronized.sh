# shellcheck shell=bash
# Over SSH, as a user who becomes root, on hosts without rsync.
mkdir -p "$scratch/tree"
for d in $(seq 20); do
  mkdir "$scratch/tree/$d"
  for f in $(seq 150); do echo "$d $f" >"$scratch/tree/$d/$f"; done
done
echo odd >"$scratch/tree/-rf *"$'\n'"it's"
ln -s 1/1 "$scratch/tree/link"
head -c 5000000 /dev/urandom >"$scratch/tree/large"
chmod 640 "$scratch/tree/1/1"
cat >"$scratch/tree.yml" <<'PLAY'
- hosts: h1,h2
  become: true
  gather_facts: false
  tasks:
    - name: There
      ansible.posix.synchronize:
        src: "{{ tree }}/"
        dest: /opt/tree
        delete: true
    - name: And back
      ansible.posix.synchronize:
        mode: pull
        src: /opt/tree/
        dest: "{{ tree }}-{{ inventory_hostname }}"
PLAY
tree_playbook() { windlass playbook -i "$state/inventory-deploy.ini" -e "tree=$scratch/tree" "$@" "$scratch/tree.yml"; }
on h1 "rm -rf /opt/tree; ! command -v rsync" || broken "there is an rsync on the host"
on h2 rm -rf /opt/tree
hosts shrink h2 /opt 2m
tree_playbook
exits 2
says 'No space left on device'
on h2 "test -z \"\$(find /opt -name '.windlass.*')\"" || broken "something is left on the full disk"
hosts unmount h2 /opt
rm -rf "$scratch"/tree-h*
tree_playbook
exits 0
recap h1 failed 0
for h in h1 h2; do
  diff -r --no-dereference "$scratch/tree" "$scratch/tree-$h" || broken "the tree from $h differs"
  [ "$(on $h stat -c %U:%a /opt/tree/1/1)" = root:640 ] || broken "the owner or mode on $h is wrong"
done
tree_playbook --check
recap h1 changed 0
tree_playbook
recap h1 changed 0
recap h2 changed 0
on h1 "echo x >/opt/tree/mine; rm /opt/tree/2/2; chmod 600 /opt/tree/3/3"
tree_playbook
recap h1 changed 1
recap h2 changed 0
[ "$(on h1 "ls /opt/tree/mine 2>/dev/null; stat -c %a /opt/tree/2/2 /opt/tree/3/3" | tr '\n' ' ')" = "644 644 " ] || broken "h1 was not mended"
on h1 rm -rf /opt/tree; on h2 rm -rf /opt/tree
