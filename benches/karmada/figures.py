"""Figures of benches/karmada/run: what each run spent on copying, on waiting for components, and on the rest."""
import datetime
import json
import pathlib
import sys

COPIES = ("Install the program", "Install the etcd programs")
WAITS = (
    "Wait until", "Wait for", "Give the member time", "Let the cluster settle", "Register the API",
)


def spans(path):
    """(task, seconds) of every task of a run: from its start to the next one's."""
    events = [json.loads(line) for line in path.read_text().splitlines()]
    stamp = lambda event: datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00"))
    marks = [(e["task"]["name"] if e["event"] == "task_start" else None, stamp(e))
             for e in events if e["event"] in ("task_start", "play_start", "recap")]
    for (name, begun), (_, ended) in zip(marks, marks[1:]):
        if name is not None:
            yield name.split(" : ")[-1], (ended - begun).total_seconds()


def main(state):
    copied = int((state / "bytes").read_text()) * 3 / 1e6
    scp = int((state / "scp").read_text()) / 1e6
    print(f"{copied:.0f} MB to three hosts by scp: {scp:.1f} s, {copied / scp:.0f} MB/s")
    for run in ("install", "second", "altered"):
        wall, user, system = (float(word) for word in (state / f"{run}.time").read_text().split())
        tasks = list(spans(state / f"{run}.json"))
        copy = sum(seconds for name, seconds in tasks if name in COPIES)
        wait = sum(seconds for name, seconds in tasks if name.startswith(WAITS))
        print(f"{run}: {wall:.1f} s; programs {copy:.1f} s, waiting {wait:.1f} s, the rest {wall - copy - wait:.1f} s; "
              f"CPU of this machine's windlass {user + system:.1f} s; {len(tasks)} tasks")
        if run == "install":
            print(f"  copy: {copied / copy:.0f} MB/s, checked on the host")
        for name, seconds in sorted(tasks, key=lambda task: -task[1])[:6]:
            print(f"    {seconds:6.2f} s  {name}")


main(pathlib.Path(sys.argv[1]))
