"""Makes the hosts and the cases, runs every engine in turn, and prints the report. Started by `run`."""

import argparse
import json
import os
import re
import subprocess
import sys

from cases import CASES, LOCAL, phases
from deploys import deploys
from engines import ENGINES, Place
from limits import limits
from measure import measure
from report import report
from work import playbooks

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = f"{ROOT}/target/peers"
HOSTS, ALIASES = 5, 20


def arguments():
    parser = argparse.ArgumentParser(prog="run", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often everything is run (%(default)s)")
    parser.add_argument("--cases", help="only these: " + ",".join(case.name for case in CASES))
    parser.add_argument("--engines", help="only these: " + ",".join(ENGINES))
    parser.add_argument("--windlass", help="the program to measure (default: a release build of this repository)")
    parser.add_argument("--before", default="", help="another build of windlass, the engine `before`")
    parser.add_argument("--keep", action="store_true", help="leave the hosts running, for the next time")
    parser.add_argument("--add", action="store_true", help="add to the runs of the last time")
    parser.add_argument("--report", action="store_true", help="only print the report of the last time")
    return parser.parse_args()


def chosen(names, known):
    names = names.split(",") if names else list(known)
    strange = [name for name in names if name not in known]
    if strange:
        sys.exit(f"run: what is {', '.join(strange)}? Known are {', '.join(known)}")
    return names


def hosts_tool(*words):
    subprocess.run([f"{ROOT}/tests/hosts/hosts", "--state", f"{HERE}/hosts", *words], check=True)


def bring_up_hosts():
    """Five hosts with Python, which ansible needs, and a hundred addresses of theirs."""
    if not os.path.exists(f"{HERE}/hosts/inventory-aliases.ini"):
        hosts_tool("up", str(HOSTS), "--python", "--aliases", str(ALIASES))


def built(path):
    if path:
        return os.path.abspath(path)
    subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=ROOT, check=True)
    return f"{ROOT}/target/release/windlass"


def addresses(count):
    """The variables of the inventory that `hosts up` wrote, and the first so many names with addresses."""
    name = "inventory.ini" if count <= HOSTS else "inventory-aliases.ini"
    with open(f"{HERE}/hosts/{name}") as file:
        text = file.read()
    variables = text.split("[all:vars]\n", 1)[1].split("\n\n", 1)[0]
    pairs = re.findall(r"^(\S+) ansible_host=(\S+)$", text, re.M)[:count]
    if len(pairs) < count:
        sys.exit(f"run: {len(pairs)} of {count} hosts are there; `tests/hosts/hosts --state {HERE}/hosts down`, then again")
    return variables, pairs


def place_of(count, windlass, before):
    """Writes the inventories of a case: for ansible and windlass, for pyinfra, and for the script."""
    place = Place(
        venv=f"{HERE}/venv",
        windlass=windlass,
        before=before,
        inventory=f"{HERE}/inventory-{count}.ini",
        pyinfra_inventory=f"{HERE}/pyinfra_{count}.py",
        limit_hosts=f"{HERE}/hosts-{count}",
        ssh=f"-i {HERE}/hosts/id_ed25519 -o UserKnownHostsFile={HERE}/hosts/known_hosts"
        " -o IdentitiesOnly=yes -o BatchMode=yes -o LogLevel=ERROR -F none",
    )
    if count == LOCAL:
        with open(place.inventory, "w") as file:
            file.write("localhost ansible_connection=local\n")
        return place
    variables, pairs = addresses(count)
    with open(place.inventory, "w") as file:
        file.write(f"[all:vars]\n{variables}\n\n[bench]\n")
        file.writelines(f"{name} ansible_host={address}\n" for name, address in pairs)
    with open(place.limit_hosts, "w") as file:
        file.writelines(f"{name} {address}\n" for name, address in pairs)
    login = {
        "ssh_user": "root",
        "ssh_key": f"{HERE}/hosts/id_ed25519",
        "ssh_known_hosts_file": f"{HERE}/hosts/known_hosts",
        "ssh_strict_host_key_checking": "yes",
    }
    with open(place.pyinfra_inventory, "w") as file:
        rows = [f"    ({name!r}, {dict(login, ssh_hostname=address)!r}),\n" for name, address in pairs]
        file.write("bench = [\n" + "".join(rows) + "]\n")
    return place


def on_all(place, command):
    """Runs a command on the hosts of a case, outside of what is measured."""
    with open(place.limit_hosts) as file:
        found = [line.split()[1] for line in file]
    jobs = [
        subprocess.Popen(["ssh", *place.ssh.split(), f"root@{address}", command], stdin=subprocess.DEVNULL)
        for address in found
    ]
    if any([job.wait() for job in jobs]):
        sys.exit(f"run: a host did not do {command!r}")


def host_group():
    with open(f"{HERE}/hosts/settings") as file:
        return re.search(r"^(?:declare \S+ )?prefix=\"?([^\"\s]+)", file.read(), re.M).group(1)


def earlier():
    """The runs that were saved."""
    if not os.path.exists(f"{HERE}/runs.jsonl"):
        return []
    with open(f"{HERE}/runs.jsonl") as file:
        return [json.loads(line) for line in file]


def run_case(case, engine, place, number, save):
    if case.reset:
        on_all(place, case.reset)
    for run, row in enumerate(phases(case), 1):
        command = ENGINES[engine](place, case.work, run)
        if command is None:
            return
        log = f"{HERE}/logs/{row.replace(' ', '-')}-{engine}.log"
        result = measure(command, log, host_group(), HERE)
        save({"row": row, "engine": engine, "round": number, **result})
        print(
            f"{row:10} {engine:10} {result['wall']:7.2f} s  CPU {result['controller_cpu']:6.2f} + {result['host_cpu']:6.2f}"
            f"  {result['memory']:4.0f} MiB  others {result['others']:4.0%}  exit {result['exit']}"
            f"  changed {result['changed']}",
            flush=True,
        )


def run_all(options):
    cases = [case for case in CASES if case.name in chosen(options.cases, [case.name for case in CASES])]
    engines = chosen(options.engines, ENGINES)
    os.makedirs(f"{HERE}/logs", exist_ok=True)
    windlass, before = built(options.windlass), options.before and built(options.before)
    bring_up_hosts()
    playbooks(f"{HERE}/playbooks")
    deploys(f"{HERE}/deploys")
    limits(f"{HERE}/limits", f"{HERE}/playbooks", [f"h{i + 1}" for i in range(HOSTS)])
    places = {count: place_of(count, windlass, before) for count in {case.hosts for case in cases}}
    first = 1 + max((run["round"] for run in earlier()), default=-1) if options.add else 0
    with open(f"{HERE}/runs.jsonl", "a" if options.add else "w") as file:

        def save(run):
            file.write(json.dumps(run) + "\n")
            file.flush()

        # Engines take turns within a round, so that a ratio compares neighbours in time.
        for number in range(first, first + options.rounds):
            for case in cases:
                for engine in engines:
                    run_case(case, engine, places[case.hosts], number, save)
    if not options.keep:
        hosts_tool("down")


def main():
    options = arguments()
    if not options.report:
        run_all(options)
    runs = earlier()
    titles = {row: case.title + row.removeprefix(case.name).replace(" ", ", ") for case in CASES for row in phases(case)}
    text = report(runs, titles, ENGINES)
    with open(f"{HERE}/report.md", "w") as file:
        file.write(text)
    print(text)


main()
