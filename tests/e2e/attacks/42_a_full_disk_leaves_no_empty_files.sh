# shellcheck shell=bash
# Needs h1 only, in any state.
mkdir "$scratch/tree"
for n in 1 2 3 4 5 6; do head -c 2000000 /dev/urandom >"$scratch/tree/file$n"; done
tar -C "$scratch" -czf "$scratch/tree.tgz" tree
head -c 9000 /dev/zero | tr '\0' x >"$scratch/small"
cat >"$scratch/playbook.yml" <<PLAY
- hosts: h1
  gather_facts: false
  tasks:
    - unarchive: {src: "$scratch/tree.tgz", dest: /mnt, creates: /mnt/tree/file6}
      when: archive | bool
    - copy: {src: "$scratch/small", dest: /mnt/small}
PLAY
hosts shrink h1 /mnt 5m
windlass playbook -i "$inventory" -e archive=true "$scratch/playbook.yml"
exits 2
says 'No space left on device'
left=$(on h1 'cd /mnt && find . -type f ! -size 2000000c')
[ -z "$left" ] || broken "parts of files are left: $left"
# The disk is completely full now, and windlass reports its own reason, not the shell's message.
on h1 'head -c 6000000 /dev/zero >/mnt/fill 2>/dev/null || true'
for user in root dashy busy; do
  windlass playbook -i "$inventory" -e ansible_user="$user" -b -e archive=false "$scratch/playbook.yml"
  exits 2
  says 'cannot write /mnt/small: No space left on device'
  says 'hint: free disk space on the host'
done
# What tar leaves alone, as it is newer than in the archive, is not removed because of a full disk either.
on h1 'rm -rf /mnt/fill /mnt/small /mnt/tree; mkdir /mnt/tree; echo precious >/mnt/tree/file1; touch -d 2037-01-01 /mnt/tree/file1'
cat >"$scratch/newer.yml" <<PLAY
- hosts: h1
  gather_facts: false
  tasks:
    - unarchive: {src: "$scratch/tree.tgz", dest: /mnt, keep_newer: true}
PLAY
windlass playbook -i "$inventory" "$scratch/newer.yml"
exits 2
[ "$(on h1 cat /mnt/tree/file1)" = precious ] || broken "a file that tar did not write was removed"
hosts unmount h1 /mnt
windlass playbook -i "$inventory" -e archive=true "$scratch/playbook.yml"
exits 0
on h1 'cd /mnt && test -s tree/file6 && test -s small && rm -rf tree small'
