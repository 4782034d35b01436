# shellcheck shell=bash
# A file system of 60 MB whose disk has 6: writing works, flushing does not. On this very machine, where it can be mounted.
mkdir "$scratch/disk" "$scratch/there"
undo() {
  umount "$scratch/there" "$scratch/disk" 2>/dev/null || true
  rm -rf "$scratch"
}
trap undo EXIT
mount -t tmpfs -o size=6m none "$scratch/disk"
truncate -s 60M "$scratch/disk/image"
# The file system's own blocks have their place on the disk: what is in its directories can be read afterwards.
fallocate --keep-size --length 3M "$scratch/disk/image"
mkfs.ext4 -q -O ^has_journal -E nodiscard -N 32 "$scratch/disk/image"
mount -o loop "$scratch/disk/image" "$scratch/there"
head -c 20000000 /dev/urandom >"$scratch/content"
cat >"$scratch/playbook.yml" <<PLAY
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - copy: {src: "$scratch/content", dest: "$scratch/there/file"}
PLAY
windlass playbook -i localhost, "$scratch/playbook.yml"
exits 2
says "cannot write $scratch/there/file: (Input/output error|No space left on device)"
[ ! -e "$scratch/there/file" ] || broken "the file is there"
found=$(find "$scratch/there" -mindepth 1 -maxdepth 1 ! -name lost+found)
[ -z "$found" ] || broken "something is left: $(ls -A "$scratch/there")"
