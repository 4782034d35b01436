# shellcheck shell=bash
# The package with the binary under test in it: how it is compiled (packaging/build) takes too long here.
hosts reset h1
# Without what is there for debuggers, which takes minutes to be packed.
strip -o "$scratch/windlass" "$WINDLASS"
package=$("$ROOT/packaging/build" --binary "$scratch/windlass" "$(dpkg --print-architecture)" | tail -1)
cp "$package" "$state/h1/root/root/windlass.deb"
on h1 "dpkg -i /root/windlass.deb && windlass --version" | tee "$output"
says '^windlass [0-9]'
# The pages that messages name are there under the same names.
on h1 "cd /usr/share/doc/windlass && [ -f docs/how-to/bundle.md ] && [ -f docs/reference/custom-resource.md ]"
on h1 "mkdir /root/w && cd /root/w && printf '[etcd]\nlocalhost ansible_connection=local\n' >hosts.ini &&
  windlass playbook -i hosts.ini --list-tasks etcd.yml && windlass playbook -i hosts.ini none.yml" >"$output" 2>&1 && broken "none.yml was found"
says 'playbook: etcd.yml'
says 'none.yml'
# Sub-commands run the playbooks of the program, whatever lies in the working directory; ./playbooks only where nobody else may
# have put it.
on h1 "cd /root/w && for name in observe etcd karmada; do echo 'kind: another' >\$name.yml; done; windlass plan -i hosts.ini" >"$output" 2>&1 || true
cat "$output"
does_not_say 'kind|start each play'
says 'planning etcd|etcd_bundle'
on h1 "rm /root/w/*.yml; chmod 1777 /root/w && mkdir -p /root/w/playbooks && for name in observe etcd karmada; do
  printf -- '- hosts: etcd\n  tasks: [{command: touch /root/foreign, check_mode: false}]\n' >/root/w/playbooks/\$name.yml; done
  chown -R nobody /root/w/playbooks && cd /root/w && windlass plan -i hosts.ini" >"$output" 2>&1 || true
cat "$output"
says 'ignored ./playbooks: another user can write to /root/w/playbooks'
on h1 '[ ! -e /root/foreign ]' || broken "a playbook of another user was run"
on h1 'rm -r /root/w/playbooks; chmod 755 /root/w'
# Roles of the program serve anybody's playbook.
on h1 "cd /root/w && printf -- '- hosts: etcd\n  roles: [etcd]\n' >own.yml && windlass playbook -i hosts.ini --syntax-check own.yml"
# They are in the user's cache, and come back if somebody changes them there.
on h1 "cd /root/w && cache=\$(echo /root/.cache/windlass/*/) && echo '- hosts: all' >\$cache/playbooks/etcd.yml &&
  mkdir \$cache/playbooks/group_vars && windlass playbook -i hosts.ini --list-tasks etcd.yml &&
  [ ! -e \$cache/playbooks/group_vars ]" >"$output" 2>&1 || broken "the playbooks were not unpacked again"
says 'etcd : '
# Not where another user could exchange them.
on h1 "cd /root/w && mkdir -m 777 /srv/shared && XDG_CACHE_HOME=/srv/shared windlass plan -i hosts.ini" >"$output" 2>&1 && broken "a shared cache was used"
says 'another user can write to /srv/shared'
# To read and to change.
on h1 "cd /root/w && windlass playbooks export own && windlass playbook -i hosts.ini --syntax-check own/playbooks/etcd.yml"
on h1 "cd /root/w && windlass playbooks export own" >"$output" 2>&1 && broken "files were overwritten"
says 'cannot write the playbooks to own'
on h1 "dpkg -r windlass && [ ! -e /usr/share/windlass ] && [ ! -e /usr/bin/windlass ]"
