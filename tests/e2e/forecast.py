"""forecast.py PLAN BEFORE AFTER NAME=HOST...: compares what a saved plan says with what an apply of it did.

BEFORE and AFTER are directories with, for each host, what `state_of` of case 92 prints: `file DIGEST PATH` and
`unit NAME ACTIVE PID START RESTARTS` (START: microseconds of the kernel's clock, which all hosts share; RESTARTS: how often systemd
itself has restarted it, such as one that has lost its lease). NAME is the host's name in the
plan, HOST its file. Prints each difference; ends with 1 if there is one.
"""

import json
import sys
from pathlib import Path

# Windlass keeps its lock and journal there, which no plan counts.
OWN = "/var/lib/windlass/"


def state(file):
    files, units = {}, {}
    for line in file.read_text().splitlines():
        kind, *words = line.split(" ", 2) if line.startswith("file ") else line.split(" ")
        if kind == "file":
            files[words[1]] = words[0]
        else:
            name, active, pid, start, restarts = words
            units[name.removesuffix(".service")] = (active == "active", pid, int(start), int(restarts))
    return files, units


def main():
    plan, before, after, *pairs = sys.argv[1:]
    hosts = dict(pair.split("=") for pair in pairs)
    found = [stage["found"] for stage in json.loads(Path(plan).read_text())["stages"]]
    said_files = {(change["host"], change["what"]) for one in found for change in one["changes"] if change["kind"] == "file"}
    said = [(service["host"], service["unit"], service["action"]) for one in found for service in one["services"]]
    wrong, started, files_compared, events = [], [], 0, set()
    for name, host in hosts.items():
        (old_files, old_units), (new_files, new_units) = (state(Path(place) / host) for place in (before, after))
        changed = {path for path in old_files.keys() | new_files.keys() if old_files.get(path) != new_files.get(path)}
        changed = {path for path in changed if not path.startswith(OWN)}
        # Directories and links are no files to this script.
        known = old_files.keys() | new_files.keys()
        forecast = {path for on, path in said_files if on == name and path in known}
        wrong += [f"{name}: {path} changed, and the plan does not say it" for path in sorted(changed - forecast)]
        wrong += [f"{name}: the plan changes {path}, which is as before" for path in sorted(forecast - changed)]
        files_compared += len(changed & forecast)
        for unit in old_units.keys() | new_units.keys():
            was, now = old_units.get(unit, (False, "0", 0, 0)), new_units.get(unit, (False, "0", 0, 0))
            if was[0] and now[0] and was[1] != now[1] and (now[3] == 0 or (name, unit, "restart") in said):
                events.add((name, unit, "restart"))
                started.append((now[2], name, unit))
            elif now[0] and not was[0]:
                events.add((name, unit, "start"))
            elif was[0] and not now[0]:
                events.add((name, unit, "stop"))
    # A reload leaves the process as it is.
    expected = {one for one in said if one[2] != "reload"}
    expected |= {(service["host"], unit, "restart") for one in found for service in one["services"] for unit in service.get("with", [])}
    wrong += [f"{name}: {action} of {unit}, and the plan does not say it" for name, unit, action in sorted(events - expected)]
    wrong += [f"{name}: the plan says {action} of {unit}, which did not happen" for name, unit, action in sorted(expected - events)]
    # The same unit on several hosts, and one unit after another, in the order of the plan. One that restarts several times is in
    # the place of the last one.
    order = [(service["host"], unit) for one in found for service in one["services"] if service["action"] == "restart" for unit in [service["unit"], *service.get("with", [])]]
    order = [at for place, at in enumerate(order) if at not in order[place + 1 :]]
    really = [(name, unit) for _, name, unit in sorted(started)]
    if not wrong and order != really:
        wrong.append(f"the order of restarts: the plan says {order}, it was {really}")
    print(*wrong, sep="\n")
    print(f"compared: {files_compared} files, {len(events)} services, {len(really)} restarts in order, {len(said) - len(expected)} reloads said")
    sys.exit(1 if wrong else 0)


main()
