"""Facts that all forms of the work share: names, sizes and texts. The playbooks are written from it here."""

import json
import os
import subprocess

COMMANDS = 30
TEMPLATES = 30
BLOB_MIB = 120
PORT = 7777
VARS = {"base_port": 7000, "peers": ["10.0.0.1", "10.0.0.2", "10.0.0.3"], "tls": True, "log_level": "info"}
DIRECTORIES = ["", "/bin", "/etc", "/data", "/log", "/run", "/etc/conf.d", "/data/wal", "/data/snap", "/tmp"]
LINES = ["max_open = 65536", "min_open = 1024"]

SMALL = """\
# {{ item_name }} on {{ inventory_hostname }}
name = {{ item_name }}
listen = {{ listen_addr | default("0.0.0.0") }}:{{ base_port + item_no }}
{% for peer in peers %}
peer.{{ loop.index }} = {{ peer }}:{{ base_port }}
{% endfor %}
{% if tls %}
tls.cert = /etc/{{ item_name }}/tls.crt
tls.key = /etc/{{ item_name }}/tls.key
{% endif %}
log = {{ log_level | upper }}
"""

UNIT = """\
[Unit]
Description=listener on {{ inventory_hostname }}
[Service]
User=b3
ExecStart=/opt/b3/bin/listener {{ port }}
Restart=always
[Install]
WantedBy=multi-user.target
"""

LISTENER = r"""
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int count, char **words) {
    int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(count > 1 ? atoi(words[1]) : 0)};
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (void *)&any, sizeof any) || listen(listener, 64)) return 1;
    for (;;) { int peer = accept(listener, 0, 0); if (peer >= 0) close(peer); }
}
"""


def save(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def files(directory):
    """The files that are copied: two texts, a small program and a large file of random bytes."""
    for name in ("one", "two"):
        save(f"{directory}/{name}.txt", "".join(f"{name} line {i} {'x' * 40}\n" for i in range(20)))
    save(f"{directory}/listener.c", LISTENER)
    subprocess.run(["cc", "-Os", "-static", "-s", "-o", f"{directory}/listener", f"{directory}/listener.c"], check=True)
    blob = f"{directory}/blob"
    if not os.path.exists(blob) or os.path.getsize(blob) != BLOB_MIB << 20:
        with open(blob, "wb") as file:
            for _ in range(BLOB_MIB):
                file.write(os.urandom(1 << 20))


def playbooks(directory):
    """Modules of ansible.builtin only, with arguments that all engines know."""
    files(f"{directory}/files")
    save(f"{directory}/templates/small.conf.j2", SMALL)
    save(f"{directory}/templates/b3.service.j2", UNIT)
    save(
        f"{directory}/local.yml",
        "- name: nothing\n  hosts: localhost\n  connection: local\n  gather_facts: false\n  tasks: []\n",
    )
    save(f"{directory}/facts.yml", "- name: facts\n  hosts: all\n  gather_facts: true\n  tasks: []\n")
    commands = [task(f"true {i}", "command", cmd="/bin/true") + "      changed_when: false\n" for i in range(COMMANDS)]
    save(f"{directory}/commands.yml", play("trivial commands", commands))
    save(f"{directory}/command.yml", play("one trivial command", commands[:1]))
    templates = [template(i, f"/opt/b2-{i}.conf", mode="0644") for i in range(TEMPLATES)]
    save(f"{directory}/templates.yml", play("templates", templates))
    save(f"{directory}/blob.yml", play("large file", [task("blob", "copy", src="blob", dest="/opt/b4-blob", mode="0755")]))
    save(f"{directory}/mix.yml", play("realistic mix", mix()))


def play(name, tasks):
    variables = "".join(f"    {key}: {json.dumps(value)}\n" for key, value in {**VARS, "port": PORT}.items())
    return f"- name: {name}\n  hosts: all\n  gather_facts: false\n  vars:\n{variables}  tasks:\n{''.join(tasks)}"


def task(name, module, /, **arguments):
    lines = "".join(f"        {key}: {json.dumps(value)}\n" for key, value in arguments.items())
    return f"    - name: {name}\n      ansible.builtin.{module}:\n{lines}"


def template(number, dest, /, **arguments):
    variables = f"      vars:\n        item_name: svc{number}\n        item_no: {number}\n"
    return task(f"template {number}", "template", src="small.conf.j2", dest=dest, **arguments) + variables


def mix():
    owned = {"owner": "b3", "group": "b3", "mode": "0750"}
    local = "/opt/b3/etc/local"
    return [
        task("user", "user", name="b3", system=True, shell="/usr/sbin/nologin", create_home=False),
        *(task(f"directory {i}", "file", path=f"/opt/b3{d}", state="directory", **owned) for i, d in enumerate(DIRECTORIES)),
        *(template(i, f"/opt/b3/etc/{i}.conf", owner="b3", mode="0640") for i in range(10)),
        task("program", "copy", src="listener", dest="/opt/b3/bin/listener", mode="0755"),
        task("one", "copy", src="one.txt", dest="/opt/b3/etc/one.txt", mode="0644"),
        task("two", "copy", src="two.txt", dest="/opt/b3/etc/two.txt", mode="0644"),
        task("line 1", "lineinfile", path=local, line=LINES[0], create=True, mode="0644"),
        task("line 2", "lineinfile", path=local, regexp="^min_open", line=LINES[1]),
        task("stat", "stat", path="/opt/b3/bin/listener") + "      register: program\n",
        task("command 1", "command", cmd="/bin/true") + "      changed_when: false\n",
        task("command 2", "command", cmd="cat /etc/hostname") + "      register: name\n      changed_when: false\n",
        task("unit", "template", src="b3.service.j2", dest="/etc/systemd/system/b3.service", mode="0644")
        + "      register: unit\n",
        task("service", "systemd_service", name="b3", daemon_reload="{{ unit.changed }}", enabled=True, state="started"),
        task("port", "wait_for", port=PORT, timeout=20),
    ]
