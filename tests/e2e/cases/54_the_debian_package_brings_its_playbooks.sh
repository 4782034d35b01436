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
# Roles of the package serve anybody's playbook.
on h1 "cd /root/w && printf -- '- hosts: etcd\n  roles: [etcd]\n' >own.yml && windlass playbook -i hosts.ini --syntax-check own.yml"
on h1 "dpkg -r windlass && [ ! -e /usr/share/windlass ] && [ ! -e /usr/bin/windlass ]"
