"""The same work as pyinfra deploys."""

from work import COMMANDS, DIRECTORIES, LINES, PORT, SMALL, TEMPLATES, UNIT, VARS, save

FACTS = """\
from pyinfra import host
from pyinfra.facts import hardware, server

for fact in (server.Hostname, server.Kernel, server.KernelVersion, server.Arch, server.Os, server.OsVersion,
             server.LinuxDistribution, server.Date, server.Mounts, server.Users, server.Groups, server.LinuxName,
             hardware.Cpus, hardware.Memory, hardware.BlockDevices, hardware.NetworkDevices):
    host.get_fact(fact)
"""

MIX = f"""\
from pyinfra import host
from pyinfra.facts.files import File
from pyinfra.operations import files, server, systemd

server.user(name="user", user="b3", system=True, shell="/usr/sbin/nologin", create_home=False)
for directory in {DIRECTORIES!r}:
    files.directory(name=f"directory {{directory}}", path="/opt/b3" + directory, user="b3", group="b3", mode="750")
for i in range(10):
    files.template(name=f"template {{i}}", src="small.conf.j2", dest=f"/opt/b3/etc/{{i}}.conf", user="b3", mode="640",
                   item_name=f"svc{{i}}", item_no=i, jinja_env_kwargs=dict(trim_blocks=True), **VARS)
files.put(name="program", src="../playbooks/files/listener", dest="/opt/b3/bin/listener", mode="755")
files.put(name="one", src="../playbooks/files/one.txt", dest="/opt/b3/etc/one.txt", mode="644")
files.put(name="two", src="../playbooks/files/two.txt", dest="/opt/b3/etc/two.txt", mode="644")
files.line(name="line 1", path="/opt/b3/etc/local", line={LINES[0]!r}, ensure_newline=True)
files.line(name="line 2", path="/opt/b3/etc/local", line="^min_open.*", replace={LINES[1]!r})
host.get_fact(File, path="/opt/b3/bin/listener")
server.shell(name="command 1", commands=["/bin/true"])
server.shell(name="command 2", commands=["cat /etc/hostname"])
unit = files.template(name="unit", src="b3.service.j2", dest="/etc/systemd/system/b3.service", mode="644", port={PORT})
systemd.daemon_reload(name="reload", _if=unit.did_change)
systemd.service(name="service", service="b3.service", running=True, enabled=True)
# server.wait asks netstat, which a bare host does not have.
server.shell(name="port", commands=["until bash -c ': >/dev/tcp/127.0.0.1/{PORT}'; do sleep 0.1; done"])
"""


def deploys(directory):
    shell = "from pyinfra.operations import server\n\n"
    variables = f"VARS = {VARS!r}\n\n"
    here = lambda text: text.replace("inventory_hostname", "host.name")
    save(f"{directory}/small.conf.j2", here(SMALL))
    save(f"{directory}/b3.service.j2", here(UNIT))
    save(f"{directory}/command.py", shell + 'server.shell(name="true", commands=["/bin/true"])\n')
    save(
        f"{directory}/commands.py",
        shell + f'for i in range({COMMANDS}):\n    server.shell(name=f"true {{i}}", commands=["/bin/true"])\n',
    )
    save(f"{directory}/facts.py", FACTS)
    save(
        f"{directory}/templates.py",
        "from pyinfra.operations import files\n\n" + variables + f"for i in range({TEMPLATES}):\n"
        '    files.template(name=f"template {i}", src="small.conf.j2", dest=f"/opt/b2-{i}.conf", mode="644",\n'
        '                   item_name=f"svc{i}", item_no=i, jinja_env_kwargs=dict(trim_blocks=True), **VARS)\n',
    )
    save(
        f"{directory}/blob.py",
        "from pyinfra.operations import files\n\n"
        'files.put(name="blob", src="../playbooks/files/blob", dest="/opt/b4-blob", mode="755")\n',
    )
    imports, rest = MIX.split("\n\n", 1)
    save(f"{directory}/mix.py", f"{imports}\n\n{variables}{rest}")
