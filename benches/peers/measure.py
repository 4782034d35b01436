"""Runs a command and measures it: wall time, CPU and memory of all its processes, CPU of the hosts meanwhile.

With control groups (v1 or v2, as root) a command's group counts whatever it started, also what outlives it.
Without, CPU and memory are those of the command and the children it waited for.
"""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time

ROOT = "/sys/fs/cgroup"
UNIFIED = os.path.exists(f"{ROOT}/cgroup.controllers")


def number(path):
    try:
        with open(path) as file:
            return int(file.read())
    except OSError:
        return 0


def field(path, name):
    try:
        with open(path) as file:
            return int(re.search(rf"^{name}\s+(\d+)", file.read(), re.M).group(1))
    except (OSError, AttributeError):
        return 0


def cpu(group):
    """CPU seconds of a group and those below it, by its name below the root of the hierarchy; 0 if there is none."""
    if UNIFIED:
        return field(f"{ROOT}/{group}/cpu.stat", "usage_usec") / 1e6
    return number(f"{ROOT}/cpuacct/{group}/cpuacct.usage") / 1e9


def machine_cpu():
    """CPU seconds that this machine was busy since it started."""
    with open("/proc/stat") as file:
        user, nice, system, idle, wait, *rest = (int(word) for word in file.readline().split()[1:9])
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK")


class Group:
    """A control group for one command."""

    def __init__(self):
        self.name = f"windlass-bench-{os.getpid()}"
        hierarchies = [ROOT] if UNIFIED else [f"{ROOT}/cpuacct", f"{ROOT}/memory"]
        self.paths = []
        for hierarchy in hierarchies:
            with contextlib.suppress(OSError):
                os.mkdir(f"{hierarchy}/{self.name}")
                self.paths.append(f"{hierarchy}/{self.name}")

    def enter(self):
        for path in self.paths:
            with open(f"{path}/cgroup.procs", "w") as file:
                file.write(str(os.getpid()))

    def processes(self):
        """Ids of those that run in it."""
        try:
            with open(f"{self.paths[0]}/cgroup.procs") as file:
                return file.read().split()
        except (OSError, IndexError):
            return []

    def largest(self):
        """KiB that were at most resident in one of its processes; libraries and the program's own text count."""
        return max((field(f"/proc/{pid}/status", "VmHWM:") for pid in self.processes()), default=0)

    def memory(self):
        """Bytes that are held and not merely cached."""
        if UNIFIED:
            return field(f"{ROOT}/{self.name}/memory.stat", "anon")
        return field(f"{ROOT}/memory/{self.name}/memory.stat", "total_rss")

    def clear(self):
        """Ends what the command left running (an ssh master, say) and removes the group."""
        for path in self.paths:
            for _ in range(100):
                with open(f"{path}/cgroup.procs") as file:
                    left = file.read().split()
                if not left:
                    break
                for pid in left:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(pid), 15)
                time.sleep(0.05)
            with contextlib.suppress(OSError):
                os.rmdir(path)


def environment(extra, scratch):
    """Nothing of the person's own settings; every connection is a new one."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "ANSIBLE", "WINDLASS"))}
    return {
        **kept,
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_HOST_KEY_CHECKING": "1",
        "ANSIBLE_SSH_CONTROL_PATH_DIR": scratch,
        "TMPDIR": scratch,
        **extra,
    }


def measure(command, log, host_group, directory):
    """One run; its output goes to the file `log`."""
    group, scratch = Group(), tempfile.mkdtemp(prefix="peers")
    held, largest, over = [0], [0], threading.Event()

    def watch():
        while not over.wait(0.03):
            held.append(group.memory())
            largest.append(group.largest())

    watcher = threading.Thread(target=watch)
    watcher.start()
    hosts_before, busy_before = cpu(host_group), machine_cpu()
    with open(log, "wb") as output:
        begin = time.monotonic()
        process = subprocess.Popen(
            command.argv,
            cwd=directory,
            env=environment(command.environment, scratch),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=group.enter,
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - begin
    over.set()
    watcher.join()
    used = cpu(group.name) or usage.ru_utime + usage.ru_stime
    hosts = cpu(host_group) - hosts_before
    others = max(0.0, machine_cpu() - busy_before - used - hosts) / wall / os.cpu_count()
    group.clear()
    shutil.rmtree(scratch, ignore_errors=True)
    with open(log, errors="replace") as output:
        changed = [int(count) for count in re.findall(r"changed=(\d+)", output.read())]
    return {
        "exit": os.waitstatus_to_exitcode(status),
        "wall": wall,
        "controller_cpu": used,
        "host_cpu": hosts,
        "largest_process": max(largest) / 1024,
        "memory": max(held) / 2**20,
        "others": others,
        "changed": sum(changed) if changed else None,
    }
