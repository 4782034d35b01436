#!/usr/bin/env python3
"""Clients of etcd, and a check of what they saw.

history.py record DIRECTORY FILE HOST...  put, get, compare and swap, lease and watch through all hosts until standard input is closed;
                                          each result is a line of FILE. DIRECTORY has ca.crt, admin.crt and admin.key.
history.py check FILE                     compare what the clients saw with the history of every member; exit code 1 if it does not fit.
history.py ask DIRECTORY HOST PATH [BODY] print what a member answers to GET PATH, or to POST with a body.
history.py self-test                      show that the check finds faults that are planted into a history.

etcd gives every answer a revision, so the order of all changes is known (the history that a watch from revision 1 returns), and no search
for an order is needed. The rules: an acknowledged change is in the history at its revision; its revision is higher than any that somebody
had seen before it was sent; a read returns the newest value at its revision, which is not lower than any that was seen before it was sent;
nothing is in the history that nobody sent; all members have the same history; a watch returns it in order, without gaps or repetitions;
a key with a lease stays for the time of the lease. A request without an answer may have been done or not.
"""
import base64
import collections
import http.client
import itertools
import json
import os
import random
import ssl
import sys
import threading
import time

PREFIX = os.environ.get("HISTORY_PREFIX", "history/")  # of all keys
KEYS = 8
PAUSE = 0.1  # seconds between two requests of a client
LIMIT = 3  # seconds that a request may take
END = PREFIX + "end"  # written when the clients have ended, and no part of the history
LEASE = 4  # seconds that a leased key stays
LONGEST_LEASE = 60  # seconds after which a leased key must be gone; a new leader lets leases begin again


def encode(text):
    return base64.b64encode(text.encode()).decode()


def decode(text):
    return base64.b64decode(text).decode()


class Refused(Exception):
    """A definite no."""


class Member:
    """Requests to one host. A connection is not shared between threads."""

    def __init__(self, credentials, host):
        self.credentials, self.host, self.connection = credentials, host, None

    def ask(self, path, body, limit=LIMIT):
        """The answer. Refused: nothing was done. OSError, HTTPException or ValueError: nobody knows."""
        if self.connection is None:
            connection = http.client.HTTPSConnection(self.host, 2379, timeout=limit, context=context_of(self.credentials))
            try:
                connection.connect()
            except OSError as error:
                raise Refused(str(error)) from error
            self.connection = connection
        try:
            self.connection.request("POST", path, json.dumps(body))
            answer = self.connection.getresponse()
            if path == "/v3/watch":
                return answer
            text = answer.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        if answer.status != 200:
            raise ValueError(text.decode(errors="replace"))
        return json.loads(text)

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None


class Log:
    """Lines of JSON, from many threads."""

    def __init__(self, file):
        self.file, self.lock = file, threading.Lock()

    def add(self, **record):
        with self.lock:
            self.file.write(json.dumps(record) + "\n")
            self.file.flush()


class Client(threading.Thread):
    """Does one request after the other, each through the next host."""

    def __init__(self, name, credentials, hosts, log, ended):
        super().__init__(name=name)
        self.members = [Member(credentials, host) for host in hosts]
        self.log, self.ended, self.seen = log, ended, {}

    def run(self):
        for number in itertools.count():
            self.request(self.members[number % len(self.members)], number)
            if self.ended.wait(PAUSE):
                return

    def request(self, member, number):
        key = PREFIX + str(random.randrange(KEYS))
        kind = random.choice(("put", "get", "swap", "get", "put", "delete"))
        expected = self.seen.get(key)
        if kind == "swap" and expected is None:
            kind = "get"
        value = f"{self.name}-{number}"
        record = {"op": kind, "key": key, "host": member.host, "sent": time.monotonic()}
        if kind in ("put", "swap"):
            record["value"] = value
        if kind == "swap":
            record["expected"] = expected
        try:
            answer = member.ask(*self.body_of(kind, key, value, expected))
            record["revision"] = int(answer["header"]["revision"])
            self.take(record, answer)
        except Refused:
            return
        except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
            record["unknown"] = str(error)[:200]
        record["got"] = time.monotonic()
        self.log.add(**record)

    @staticmethod
    def body_of(kind, key, value, expected):
        put = {"key": encode(key), "value": encode(value)}
        if kind == "put":
            return "/v3/kv/put", put
        if kind == "delete":
            return "/v3/kv/deleterange", {"key": encode(key)}
        if kind == "get":
            return "/v3/kv/range", {"key": encode(key)}
        return "/v3/kv/txn", {
            "compare": [{"key": encode(key), "target": "VALUE", "result": "EQUAL", "value": encode(expected)}],
            "success": [{"requestPut": put}],
        }

    def take(self, record, answer):
        """Notes what the answer says beside its revision."""
        kind, key = record["op"], record["key"]
        if kind == "get":
            record["found"] = decode(answer["kvs"][0]["value"]) if answer.get("kvs") else None
            self.seen[key] = record["found"]
        elif kind == "swap":
            record["swapped"] = answer.get("succeeded", False)
        elif kind == "delete":
            record["deleted"] = int(answer.get("deleted", 0))


class Leaser(Client):
    """Puts keys that end with a lease."""

    def request(self, member, number):
        key = f"{PREFIX}lease-{number}"
        record = {"op": "put", "key": key, "value": f"{self.name}-{number}", "host": member.host, "lease": LEASE}
        try:
            granted = time.monotonic()
            lease = member.ask("/v3/lease/grant", {"TTL": str(LEASE)})["ID"]
            record["granted"], record["sent"] = granted, time.monotonic()
        except (Refused, OSError, http.client.HTTPException, ValueError, KeyError):
            return
        try:
            answer = member.ask("/v3/kv/put", {"key": encode(key), "value": encode(record["value"]), "lease": lease})
            record["revision"] = int(answer["header"]["revision"])
        except Refused:
            return
        except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
            record["unknown"] = str(error)[:200]
        record["got"] = time.monotonic()
        self.log.add(**record)
        self.ended.wait(1)


def events_of(line):
    """The events of an answer to a watch: (revision, key, value); the value of a deletion is None."""
    result = json.loads(line)["result"]
    if result.get("canceled"):
        raise ValueError(str(result))
    events = []
    for event in result.get("events", []):
        pair = event["kv"]
        value = None if event.get("type") == "DELETE" else decode(pair.get("value", ""))
        events.append((int(pair["mod_revision"]), decode(pair["key"]), value))
    return events


def watch(member, start):
    """Opens a watch of all keys of the clients from a revision on."""
    end = PREFIX[:-1] + chr(ord(PREFIX[-1]) + 1)
    create = {"key": encode(PREFIX), "range_end": encode(end), "start_revision": str(start)}
    return member.ask("/v3/watch", {"create_request": create}, limit=2)


class Watcher(threading.Thread):
    """Watches through one host, and opens the watch again where it ended."""

    def __init__(self, credentials, host, log, ended):
        super().__init__(daemon=True)
        self.member, self.log, self.ended = Member(credentials, host), log, ended
        self.following = 1

    def run(self):
        while not self.ended.is_set():
            try:
                answer = watch(self.member, self.following)
                while line := answer.readline():
                    for event in events_of(line):
                        self.log.add(op="event", host=self.member.host, event=event, at=time.monotonic())
                        self.following = event[0] + 1
            except (Refused, OSError, http.client.HTTPException, ValueError, KeyError):
                pass
            self.member.close()
            self.ended.wait(0.5)


def end_history(credentials, hosts):
    """Writes what ends the history, and returns its revision. What follows, such as the end of a lease, is no part of it."""
    for _ in range(60):
        for host in hosts:
            member = Member(credentials, host)
            try:
                answer = member.ask("/v3/kv/put", {"key": encode(END), "value": encode("end")}, limit=10)
                return int(answer["header"]["revision"])
            except (Refused, OSError, http.client.HTTPException, ValueError, KeyError):
                continue
            finally:
                member.close()
        time.sleep(1)
    raise SystemExit("history: no member accepts the end of the history")


def whole_history(credentials, host, end):
    """All events that a member knows, before the revision at which the history ends. None: it does not answer, or is no member."""
    member = Member(credentials, host)
    try:
        answer, events = watch(member, 1), []
        member.connection.sock.settimeout(30)
        while not events or events[-1][0] < end:
            events += events_of(answer.readline())
        return [event for event in events if event[0] < end and event[1] != END]
    except (Refused, OSError, http.client.HTTPException, ValueError, KeyError):
        return None
    finally:
        member.close()


def context_of(directory):
    # Read for each connection: they may be replaced meanwhile.
    context = ssl.create_default_context(cafile=f"{directory}/ca.crt")
    context.load_cert_chain(f"{directory}/admin.crt", f"{directory}/admin.key")
    return context


def record_history(directory, path, hosts):
    ended = threading.Event()
    with open(path, "a", encoding="utf-8") as file:
        log = Log(file)
        clients = [Client(name, directory, hosts[n:] + hosts[:n], log, ended) for n, name in enumerate("abcd")]
        clients.append(Leaser("lease", directory, hosts, log, ended))
        watched = threading.Event()
        watchers = {host: Watcher(directory, host, log, watched) for host in hosts}
        for thread in [*clients, *watchers.values()]:
            thread.start()
        sys.stdin.read()
        ended.set()
        for client in clients:
            client.join()
        time.sleep(LEASE)
        end = end_history(directory, hosts)
        for host in hosts:
            events = whole_history(directory, host, end)
            if events is not None:
                log.add(op="history", host=host, events=events, end=end, at=time.monotonic())
                # Through a member, a watch sees all of it, some time.
                for _ in range(600):
                    if watchers[host].following > end:
                        break
                    time.sleep(0.1)
        watched.set()


def check(records):
    """What does not fit: a list of sentences."""
    faults = []
    histories = [record for record in records if record["op"] == "history"]
    if not histories:
        return ["no member told its history"]
    history = [tuple(event) for event in histories[0]["events"]]
    for other in histories[1:]:
        if [tuple(event) for event in other["events"]] != history:
            faults.append(f"{histories[0]['host']} and {other['host']} have different histories")
    if [event[0] for event in history] != sorted(event[0] for event in history):
        faults.append("the history is not in order")
    faults += check_requests([record for record in records if record["op"] not in ("history", "event")], history)
    ends = [it["end"] for it in histories]
    faults += check_watches([it for it in records if it["op"] == "event" and it["event"][0] < min(ends)], history)
    last = collections.defaultdict(int)
    for record in records:
        if record["op"] == "event":
            last[record["host"]] = max(last[record["host"]], record["event"][0])
    faults += [f"watch: through {it['host']}, the end was not seen" for it in histories if last[it["host"]] < it["end"]]
    return faults


def check_requests(requests, history):
    faults = []
    at = {(revision, key): value for revision, key, value in history}
    of_key = collections.defaultdict(list)
    for revision, key, value in history:
        of_key[key].append((revision, value))

    def value_at(key, revision):
        value = None
        for changed, new in of_key[key]:
            if changed > revision:
                break
            value = new
        return value

    changes = set()
    answered = sorted((it for it in requests if "revision" in it), key=lambda it: it["got"])
    returned, highest = [it["got"] for it in answered], list(itertools.accumulate((it["revision"] for it in answered), max))
    for it in answered:
        what, revision, key = f"{it['op']} {it['key']} at revision {it['revision']} through {it['host']}", it["revision"], it["key"]
        seen = highest[earlier - 1] if (earlier := count_before(returned, it["sent"])) else 0
        changed = it["op"] == "put" or it.get("swapped") or it.get("deleted")
        if changed:
            new = it.get("value")
            if (revision, key) not in at or at[(revision, key)] != new:
                faults.append(f"lost: {what} was acknowledged, and is not in the history")
            if revision <= seen:
                faults.append(f"back: {what}, and revision {seen} was seen before it was sent")
            if (revision, key) in changes:
                faults.append(f"twice: {what} was acknowledged twice")
            changes.add((revision, key))
        elif revision < seen:
            faults.append(f"stale: {what}, and revision {seen} was seen before it was sent")
        if it["op"] == "get" and it["found"] != value_at(key, revision):
            faults.append(f"wrong: {what} found {it['found']!r}, not {value_at(key, revision)!r}")
        if it["op"] == "swap":
            before = value_at(key, revision - 1 if it["swapped"] else revision)
            if (before == it["expected"]) != it["swapped"]:
                faults.append(f"wrong: {what} was {'done' if it['swapped'] else 'not done'}, although the value was {before!r}")
        if it.get("lease"):
            faults += check_lease(it, of_key[key], what)
    sent = {(it["key"], it["value"]) for it in requests if "value" in it}
    for revision, key, value in history:
        if value is not None and (key, value) not in sent:
            faults.append(f"made up: revision {revision} has {key} = {value!r}, which nobody sent")
    values = [value for _, _, value in history if value is not None]
    if len(values) != len(set(values)):
        faults.append("twice: a value is in the history twice, and was sent once")
    return faults


def count_before(times, moment):
    """How many of these sorted times are before a moment."""
    low, high = 0, len(times)
    while low < high:
        middle = (low + high) // 2
        if times[middle] < moment:
            low = middle + 1
        else:
            high = middle
    return low


def check_lease(it, changes, what):
    """Times are of watches, which return an event only after it happened."""
    ends = [revision for revision, value in changes if value is None]
    if not ends and it["age"] > LONGEST_LEASE:
        return [f"kept: {what} had a lease of {it['lease']} s, and is there {it['age']:.0f} s later"]
    if ends and it.get("ended") is not None and it["ended"] - it["granted"] < it["lease"]:
        return [f"early: {what} had a lease of {it['lease']} s, and ended {it['ended'] - it['granted']:.1f} s after it was granted"]
    return []


def check_watches(events, history):
    faults = []
    of_host = collections.defaultdict(list)
    for record in events:
        if record["event"][1] != END:
            of_host[record["host"]].append(tuple(record["event"]))
    for host, seen in of_host.items():
        wanted = history[:sum(1 for event in history if event[0] <= seen[-1][0])]
        if seen != wanted:
            missing, more = set(wanted) - set(seen), set(seen) - set(wanted)
            faults.append(f"watch: through {host}, {len(missing)} events are missing, {len(more)} are of no history, of {len(seen)}")
    return faults


def read_records(path):
    with open(path, encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    # When a leased key was seen to end, and how old it is when the members tell their history.
    end = max((record["at"] for record in records if record["op"] == "history"), default=0)
    ended = {}
    for record in records:
        if record["op"] == "event" and record["event"][2] is None:
            ended.setdefault(record["event"][1], record["at"])
    for record in records:
        if record.get("lease"):
            record["age"], record["ended"] = end - record["granted"], ended.get(record["key"])
    return records


def count_words(records):
    kinds = collections.Counter(record["op"] for record in records)
    unknown = sum(1 for record in records if "unknown" in record)
    acknowledged = sum(1 for it in records if "revision" in it and (it["op"] == "put" or it.get("swapped") or it.get("deleted")))
    pauses = sorted(it["got"] for it in records if "revision" in it and it["op"] == "put")
    longest = max((after - before for before, after in zip(pauses, pauses[1:])), default=0)
    return (f"{acknowledged} acknowledged changes, {kinds['get']} reads, {kinds['event']} events, {unknown} requests without an answer, "
            f"longest time without an acknowledged put {longest:.1f} s, {kinds['history']} members compared")


def self_test():
    """A history that fits, and the same with each kind of fault."""
    key, other = PREFIX + "0", PREFIX + "1"
    events = [(2, key, "a-0"), (3, other, "b-0"), (4, key, "a-1"), (5, key, None), (6, key, "a-9")]
    good = [
        {"op": "put", "key": key, "value": "a-0", "host": "h1", "sent": 1, "got": 2, "revision": 2},
        {"op": "put", "key": other, "value": "b-0", "host": "h2", "sent": 1, "got": 3, "revision": 3},
        {"op": "swap", "key": key, "value": "a-1", "expected": "a-0", "swapped": True, "host": "h1", "sent": 4, "got": 5, "revision": 4},
        {"op": "get", "key": key, "found": "a-1", "host": "h2", "sent": 6, "got": 7, "revision": 4},
        {"op": "swap", "key": key, "value": "a-3", "expected": "a-0", "swapped": False, "host": "h2", "sent": 8, "got": 9, "revision": 4},
        {"op": "delete", "key": key, "deleted": 1, "host": "h1", "sent": 10, "got": 11, "revision": 5},
        {"op": "put", "key": key, "value": "a-9", "host": "h1", "sent": 12, "got": 13, "unknown": "timed out"},
        {"op": "put", "key": key, "value": "a-8", "host": "h1", "sent": 14, "got": 15, "unknown": "timed out"},
    ]
    # After the end of the history, a lease may end.
    seen = events + [(9, END, "end"), (10, other, None)]
    watched = [{"op": "event", "host": host, "event": event, "at": 20} for host in ("h1", "h2") for event in seen]
    told = [{"op": "history", "host": host, "events": events, "end": 9, "at": 30} for host in ("h1", "h2")]
    assert check(good + watched + told) == [], check(good + watched + told)

    def with_history(changed, only=None):
        return [{**it, "events": changed} if only in (None, it["host"]) else it for it in told]

    def altered(place, **what):
        return good[:place] + [{**good[place], **what}] + good[place + 1:]

    without = [event for event in events if event[0] != 3]
    planted = {
        "lost": good + with_history(without),
        "different": good + with_history(without, "h2"),
        "stale": altered(3, found="a-0", revision=2) + told,
        "wrong: get": altered(3, found="a-0") + told,
        "wrong: swap": altered(2, expected="a-7") + told,
        "back": altered(1, sent=10, got=12) + told,
        "twice": good + [good[0]] + told,
        "made up": good + with_history(events + [(7, key, "nobody-1")]),
        "0 are of no history": good + watched[:1] + watched[2:] + told,
        "1 events are missing": good + watched[:3] + watched[4:] + told,
        "of 6": good + watched[:2] + watched[1:] + told,
        "not in order": good + with_history(events[1::-1] + events[2:]),
        "early": good + [{"op": "put", "key": PREFIX + "lease-1", "value": "l-1", "host": "h1", "sent": 16, "got": 17, "revision": 7, "lease": 4,
                          "granted": 16, "age": 14, "ended": 18}]
        + with_history(events + [(7, PREFIX + "lease-1", "l-1"), (8, PREFIX + "lease-1", None)]),
        "kept": good + [{"op": "put", "key": PREFIX + "lease-1", "value": "l-1", "host": "h1", "sent": 16, "got": 17, "revision": 7, "lease": 4,
                         "granted": 16, "age": 100, "ended": None}] + with_history(events + [(7, PREFIX + "lease-1", "l-1")]),
        "2 events are missing": good + watched[:2] + watched[4:] + told,
        "through h2, the end was not seen": good + watched[:len(seen)] + watched[len(seen):-2] + told,
        "through h1, the end was not seen": good + watched[len(seen):] + told,
        "no member": good,
    }
    for fault, records in planted.items():
        found = check(records)
        assert any(fault in sentence for sentence in found), f"{fault}: {found}"
    print(f"a history that fits, and {len(planted)} faults, all found")


def main():
    if sys.argv[1:2] == ["self-test"]:
        self_test()
    elif sys.argv[1:2] == ["record"] and len(sys.argv) > 4:
        record_history(sys.argv[2], sys.argv[3], sys.argv[4:])
    elif sys.argv[1:2] == ["ask"] and len(sys.argv) in (5, 6):
        connection = http.client.HTTPSConnection(sys.argv[3], 2379, timeout=10, context=context_of(sys.argv[2]))
        connection.request(*(("POST", *sys.argv[4:]) if len(sys.argv) == 6 else ("GET", sys.argv[4])))
        print(connection.getresponse().read().decode())
    elif sys.argv[1:2] == ["check"] and len(sys.argv) == 3:
        records = read_records(sys.argv[2])
        faults = check(records)
        print("history: " + count_words(records))
        for fault in faults[:20]:
            print(fault)
        if faults:
            sys.exit(f"{len(faults)} faults in the history")
    else:
        sys.exit(__doc__)


main()
