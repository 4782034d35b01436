"""Who does the work, and by which command line."""

import glob
import os
from dataclasses import dataclass, field, replace

CURVE25519 = "-o KexAlgorithms=curve25519-sha256 -o Ciphers=aes128-gcm@openssh.com"


@dataclass(frozen=True)
class Place:
    """Where a run finds its things."""

    venv: str
    windlass: str
    before: str
    """Another build of windlass to compare with; empty: none."""
    inventory: str
    pyinfra_inventory: str
    limit_hosts: str
    ssh: str
    """Options of ssh that reach the hosts."""


@dataclass
class Command:
    argv: list
    environment: dict = field(default_factory=dict)


def windlass(place, work, run):
    if work == "version":
        return Command([place.windlass, "--version"])
    return Command([place.windlass, "playbook", "-i", place.inventory, f"playbooks/{work}.yml"])


def before(place, work, run):
    return windlass(replace(place, windlass=place.before), work, run) if place.before else None


def limit(place, work, run, ssh=""):
    if work in ("version", "local"):
        return None
    here = os.path.dirname(os.path.abspath(__file__))
    environment = {"LIMIT_SSH": f"{place.ssh} {ssh}", "LIMIT_HOSTS": place.limit_hosts}
    return Command([f"{here}/limit", work, str(run)], environment)


def limit_kex(place, work, run):
    """The default key exchange of OpenSSH costs some 60 ms of CPU per connection; this one some 10."""
    return limit(place, work, run, CURVE25519)


def ansible(place, work, run, **settings):
    tool = f"{place.venv}/bin/ansible-playbook"
    argv = [tool, "--version"] if work == "version" else [tool, "-i", place.inventory, f"playbooks/{work}.yml"]
    return Command(argv, settings)


def tuned(place, work, run, **settings):
    """As a person who wants it fast sets it up."""
    if work in ("version", "local") and not settings:
        return None
    return ansible(place, work, run, ANSIBLE_PIPELINING="1", ANSIBLE_FORKS="50", **settings)


def mitogen(place, work, run):
    if work == "version":
        return None
    plugins = glob.glob(f"{place.venv}/lib/python3*/site-packages/ansible_mitogen/plugins/strategy")[0]
    return tuned(place, work, run, ANSIBLE_STRATEGY_PLUGINS=plugins, ANSIBLE_STRATEGY="mitogen_linear")


def pyinfra(place, work, run):
    tool = f"{place.venv}/bin/pyinfra"
    if work == "version":
        return Command([tool, "--version"])
    if work == "local":
        return None
    return Command([tool, "-y", "--chdir", "deploys", place.pyinfra_inventory, f"{work}.py"])


ENGINES = {
    "windlass": windlass,
    "before": before,
    "limit-kex": limit_kex,
    "limit": limit,
    "ansible": ansible,
    "tuned": tuned,
    "mitogen": mitogen,
    "pyinfra": pyinfra,
}
