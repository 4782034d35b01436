"""The same work as one shell script per host, written by hand: what a tool could at best be."""

import base64
import hashlib

import jinja2

from work import COMMANDS, DIRECTORIES, LINES, PORT, SMALL, TEMPLATES, UNIT, VARS, save

# Writes only what differs, and never half a file.
PUT = """\
set -e
changed=0
put() { # destination mode owner, the content on standard input
  cat >"$1.new"
  if cmp -s "$1.new" "$1"; then rm "$1.new"; return; fi
  chmod "$2" "$1.new"
  [ -z "$3" ] || chown "$3" "$1.new"
  mv "$1.new" "$1"
  changed=$((changed+1))
}
"""

FACTS = """\
cat /etc/os-release /proc/meminfo /proc/cpuinfo /proc/mounts /etc/passwd
uname -a; hostname; date; df -k; ip -o addr; ip route; env; id
cat /sys/class/dmi/id/* 2>/dev/null; ls -l /sys/block; systemctl --version | head -1
"""


def limits(directory, playbooks, hosts):
    """Writes `WORK/HOST.sh`. The large file is no script: `limit` sends it."""
    environment = jinja2.Environment(trim_blocks=True, keep_trailing_newline=True)
    small, unit = environment.from_string(SMALL), environment.from_string(UNIT)
    for host in hosts:

        def conf(number, host=host):
            return small.render(item_name=f"svc{number}", item_no=number, inventory_hostname=host, **VARS)

        templates = [put(f"/opt/b2-{i}.conf", "644", "", conf(i)) for i in range(TEMPLATES)]
        service = unit.render(inventory_hostname=host, port=PORT)
        save(f"{directory}/commands/{host}.sh", "set -e\n" + "/bin/true\n" * COMMANDS)
        save(f"{directory}/command/{host}.sh", "/bin/true\n")
        save(f"{directory}/templates/{host}.sh", PUT + "".join(templates) + "echo changed=$changed\n")
        save(f"{directory}/mix/{host}.sh", mix(playbooks, conf, service))
        save(f"{directory}/facts/{host}.sh", FACTS)


def put(dest, mode, owner, text):
    return f"put {dest} {mode} '{owner}' <<'E_O_F'\n{text}E_O_F\n"


def mix(playbooks, conf, service):
    with open(f"{playbooks}/files/listener", "rb") as file:
        program = file.read()
    lines = [PUT, "id b3 >/dev/null 2>&1 || { useradd -r -M -s /usr/sbin/nologin b3; changed=$((changed+1)); }\n"]
    for directory in DIRECTORIES:
        path = f"/opt/b3{directory}"
        lines.append(
            f'[ "$(stat -c %U:%G:%a {path} 2>/dev/null)" = b3:b3:750 ] || '
            f"{{ mkdir -p {path}; chown b3:b3 {path}; chmod 750 {path}; changed=$((changed+1)); }}\n"
        )
    lines += [put(f"/opt/b3/etc/{i}.conf", "640", "b3", conf(i)) for i in range(10)]
    at = "/opt/b3/bin/listener"
    lines.append(
        f"sum=$(sha256sum {at} 2>/dev/null || true)\n"
        f'if [ "${{sum%% *}}" != {hashlib.sha256(program).hexdigest()} ]; then\n'
        f"base64 -d >{at}.new <<'E_O_F'\n{base64.encodebytes(program).decode()}E_O_F\n"
        f"chmod 755 {at}.new; mv {at}.new {at}; changed=$((changed+1)); fi\n"
    )
    for name in ("one", "two"):
        with open(f"{playbooks}/files/{name}.txt") as file:
            lines.append(put(f"/opt/b3/etc/{name}.txt", "644", "", file.read()))
    for line in LINES:
        lines.append(
            f'grep -qxF "{line}" /opt/b3/etc/local 2>/dev/null || '
            f'{{ echo "{line}" >>/opt/b3/etc/local; changed=$((changed+1)); }}\n'
        )
    lines.append(f"stat {at} >/dev/null; /bin/true; cat /etc/hostname >/dev/null; before=$changed\n")
    lines.append(put("/etc/systemd/system/b3.service", "644", "", service))
    lines.append(
        "[ $changed = $before ] || systemctl daemon-reload\n"
        "systemctl is-enabled -q b3 || { systemctl enable -q b3; changed=$((changed+1)); }\n"
        "systemctl is-active -q b3 || { systemctl start b3; changed=$((changed+1)); }\n"
        f'until bash -c ": >/dev/tcp/127.0.0.1/{PORT}" 2>/dev/null; do sleep .05; done\n'
        "echo changed=$changed\n"
    )
    return "".join(lines)
