"""What is measured: each case is a playbook, on so many hosts, run once or twice."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    name: str
    title: str
    work: str
    """The playbook, deploy and limit script that do it."""
    hosts: int
    runs: int = 1
    """2: a first run that makes changes, and a second that finds nothing to change."""
    reset: str = ""
    """What undoes it on a host, as root."""


LOCAL = 0
"""No host: this machine."""

CASES = [
    Case("version", "start-up: `--version`", "version", LOCAL),
    Case("local", "start-up: an empty play on localhost", "local", LOCAL),
    Case("b1-1", "30 trivial commands, 1 host", "commands", 1),
    Case("b1", "30 trivial commands, 5 hosts", "commands", 5),
    Case("b2", "30 templates, 5 hosts", "templates", 5, 2, "rm -f /opt/b2-*"),
    Case(
        "b3",
        "a realistic mix, 5 hosts",
        "mix",
        5,
        2,
        "systemctl disable -q --now b3 2>/dev/null; rm -rf /etc/systemd/system/b3.service /opt/b3;"
        " systemctl daemon-reload; systemctl reset-failed; userdel b3 2>/dev/null; true",
    ),
    Case("b4", "a 120 MB file, 5 hosts", "blob", 5, 2, "rm -f /opt/b4-*"),
    Case("b5", "facts, 5 hosts", "facts", 5),
    Case("b6", "one command, 100 addresses", "command", 100),
]


def phases(case):
    """Names of the rows of a case: `b2 first`, `b2 second`."""
    return [case.name] if case.runs == 1 else [f"{case.name} first", f"{case.name} second"]
