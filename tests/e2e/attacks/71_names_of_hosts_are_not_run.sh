# shellcheck shell=bash
# Needs h1 up, and nothing on it.
# Names and users from inventories, from add_host and from resources are text for the shell of a ProxyCommand.
printf 'Host *\n  ProxyCommand sh -c "exec nc %%h %%p" %%n %%r\n' >"$scratch/ssh_config"
cat >"$scratch/play.yml" <<END
- hosts: h1
  gather_facts: false
  tasks:
    - name: Add a host whose address is shell text
      ansible.builtin.add_host:
        name: added
        groups: added
        ansible_host: '\$(touch $scratch/pwned)'
- hosts: all:added
  gather_facts: false
  tasks:
    - name: Log in
      ansible.builtin.ping:
END
sed 's/^h2 .*/h2 ansible_user="x;touch $scratch\/pwned"/' "$inventory" >"$scratch/inventory.ini"
windlass playbook -i "$scratch/inventory.ini" --ssh-common-args "-F $scratch/ssh_config" "$scratch/play.yml"
exits 4
says 'unreachable: \[added\]: cannot connect to added: ansible_host .* contains .\$., which is not allowed in a host name'
[ ! -e "$scratch/pwned" ] || broken "a name ran a command on the controller"
sed -n '2,$p' "$ROOT/tests/resources/bad/rule-user-of-a-host.yaml" >"$scratch/resource.yaml"
windlass playbook -i "$scratch/resource.yaml" --ssh-common-args "-F $scratch/ssh_config" "$scratch/play.yml"
exits 4
says "a user's name must consist of letters"
