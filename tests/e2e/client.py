#!/usr/bin/env python3
"""client.py KUBECONFIG SECONDS [RATE]: asks a control plane RATE times a second (24), half of it writes, and counts failures.

Deployments and PropagationPolicies are made, changed and removed; Clusters and ConfigMaps are read. Half of the workers hold an
HTTP/2 connection, as Kubernetes' own clients do, half make a new one (HTTP/1.1) for each request. Repeated is only what nobody
has seen: a connection that is refused before anything was sent, 429 with Retry-After, and what came after the GOAWAY that says
what was the last request looked at. With WINDLASS_STAND_INS, when the API server is of Kubernetes 1.20, which does not answer 429
when it ends, also a request that failed as the API server could not reach itself. Ends after SECONDS, or when its standard input
is closed. Needs the Python package h2.
Prints a line for each failure, with the time, and at last a summary as JSON; exit code 1 if something failed.
"""
import base64
import http.client
import itertools
import json
import os
import select
import socket
import ssl
import sys
import tempfile
import threading
import time
import urllib.parse

import h2.config
import h2.connection
import h2.events

LIMIT = 15 * int(os.environ.get("E2E_SLOW", "1"))  # seconds that a request may take
# What an API server of Kubernetes 1.20 answers that no longer listens: a check of a request asks the server itself.
ENDS = b'Get \\"https://[::1]:' if os.environ.get("WINDLASS_STAND_INS") else None
GOAWAY = 7  # HTTP/2's frame that says that a connection ends, and which request was the last one looked at


def connected(host, context, repeated, until):
    """A TLS connection; refused ones are repeated, as nothing was sent."""
    address, _, port = host.rpartition(":")
    while True:
        try:
            plain = socket.create_connection((address.strip("[]"), int(port)), timeout=LIMIT)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return context.wrap_socket(plain, server_hostname=address.strip("[]"))
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            repeated["refused"] += 1
            time.sleep(0.1)


class Fresh:
    """A connection for each request, HTTP/1.1."""

    def __init__(self, host, context, repeated):
        self.host, self.context, self.repeated = host, context, repeated

    def request(self, method, path, text, headers, until):
        connection = http.client.HTTPConnection(self.host, timeout=LIMIT)
        connection.sock = connected(self.host, self.context, self.repeated, until)
        try:
            connection.request(method, path, text, headers)
            answer = connection.getresponse()
            return answer.status, answer.getheader("Retry-After"), answer.read()
        finally:
            connection.close()

    def drop(self):
        pass


class Held:
    """One connection for as long as the server lets it live, HTTP/2."""

    def __init__(self, host, context, repeated):
        self.host, self.context, self.repeated = host, context, repeated
        self.socket = self.state = None

    def drop(self):
        if self.socket is not None:
            self.socket.close()
        self.socket = self.state = None

    def begin(self, until):
        self.socket = connected(self.host, self.context, self.repeated, until)
        self.come, self.last = b"", None
        self.state = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.state.initiate_connection()
        self.socket.sendall(self.state.data_to_send())

    def events(self):
        """What has come, or nothing if the connection has ended. A GOAWAY is kept from h2, which would not hear the answers
        that come after it."""
        data = self.socket.recv(65536)
        if not data:
            return None
        self.come += data
        frames = b""
        while len(self.come) >= 9:
            end = 9 + int.from_bytes(self.come[:3], "big")
            if len(self.come) < end:
                break
            frame, self.come = self.come[:end], self.come[end:]
            if frame[3] == GOAWAY:
                self.last = int.from_bytes(frame[9:13], "big") & 0x7FFFFFFF
            else:
                frames += frame
        events = self.state.receive_data(frames)
        if self.last is None:
            self.socket.sendall(self.state.data_to_send())
        return events

    def over(self):
        """Whether the server has said that this connection ends, or ended it: looked at before anything is sent."""
        while select.select([self.socket], [], [], 0)[0] or self.socket.pending():
            if self.events() is None:
                return True
        return self.last is not None

    def request(self, method, path, text, headers, until):
        while True:
            if self.socket is not None and self.over():
                self.drop()
            if self.socket is None:
                self.begin(until)
            answer = self.exchange(method, path, text, headers)
            if answer is not None:
                return answer
            self.repeated["goaway"] += 1

    def exchange(self, method, path, text, headers):
        """The answer, or nothing if the server has said that it did not look at the request."""
        stream = self.state.get_next_available_stream_id()
        lines = [(":method", method), (":path", path), (":scheme", "https"), (":authority", self.host)]
        lines += [(name.lower(), value) for name, value in headers.items()]
        self.state.send_headers(stream, lines, end_stream=text is None)
        if text is not None:
            self.state.send_data(stream, text.encode(), end_stream=True)
        self.socket.sendall(self.state.data_to_send())
        status, after, said = None, None, b""
        while True:
            events = self.events()
            if self.last is not None and self.last < stream:
                self.drop()
                return None
            if events is None:
                raise ConnectionError("the connection ended before the answer")
            for event in events:
                if getattr(event, "stream_id", None) != stream:
                    continue
                if isinstance(event, h2.events.ResponseReceived):
                    found = dict(event.headers)
                    status, after = int(found[":status"]), found.get("retry-after")
                elif isinstance(event, h2.events.DataReceived):
                    said += event.data
                    self.state.acknowledge_received_data(event.flow_controlled_length, stream)
                elif isinstance(event, h2.events.StreamReset):
                    raise ConnectionError(f"the server gave the request up ({event.error_code})")
                elif isinstance(event, h2.events.StreamEnded):
                    return status, after, said


class Api:
    """One worker's way to the API."""

    def __init__(self, host, fresh, held, keeps):
        self.repeated = {"refused": 0, "429": 0, "goaway": 0, "ends": 0}
        self.way = Held(host, held, self.repeated) if keeps else Fresh(host, fresh, self.repeated)

    def request(self, method, path, body=None, kind="application/json"):
        until = time.monotonic() + LIMIT
        text = None if body is None else json.dumps(body)
        headers = {"Content-Type": kind, "Accept": "application/json"}
        while True:
            status, after, said = self.way.request(method, path, text, headers, until)
            ends = status == 500 and ENDS is not None and ENDS in said
            if not (ends or (status == 429 and after)) or time.monotonic() > until:
                return status, said
            self.repeated["ends" if ends else "429"] += 1
            time.sleep(min(float(after or 1), 2))


def deployment(name):
    labels = {"app": name, "made-by": "client"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": labels}, "spec": spec}


def policy(name):
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    spec = {"resourceSelectors": [selector], "placement": {"clusterAffinity": {"clusterNames": ["nowhere"]}}}
    return {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": name}, "spec": spec}


def asked(name):
    """What a worker asks in one round, one request after the other, of objects of this name: half of them write."""
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    policies = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies"
    clusters = "/apis/cluster.karmada.io/v1alpha1/clusters"
    return [
        ("POST", deployments, deployment(name), 201),
        ("GET", clusters, None, 200),
        ("POST", policies, policy(name), 201),
        ("GET", f"{policies}/{name}", None, 200),
        ("PATCH", f"{deployments}/{name}", {"spec": {"replicas": 2}}, 200),
        ("GET", clusters, None, 200),
        ("DELETE", f"{policies}/{name}", None, 200),
        ("GET", f"{deployments}/{name}", None, 200),
        ("DELETE", f"{deployments}/{name}", None, 200),
        ("GET", "/api/v1/namespaces/karmada-system/configmaps?limit=5", None, 200),
    ]


class Count:
    def __init__(self):
        self.lock = threading.Lock()
        self.begun = time.monotonic()
        self.asked = self.written = 0
        self.slowest = 0.0
        self.failures = []

    def add(self, method, path, begun, failure):
        """A request that was sent at `begun`: that is when it failed, however long its answer was waited for."""
        with self.lock:
            took = time.monotonic() - begun
            self.asked += 1
            self.written += method != "GET"
            self.slowest = max(self.slowest, took)
            if failure:
                at = begun - self.begun
                self.failures.append((at, failure))
                stamp = time.strftime("%H:%M:%S")
                print(f"{stamp} {at:7.1f} s  {method} {path}: {failure}", flush=True)


def work(worker, api, pause, count, ended):
    ended.wait(pause * worker[1])  # spread over the first pause
    for number in itertools.count(1):
        for method, path, body, expected in asked(f"client-{os.getpid()}-{worker[0]}-{number}"):
            if ended.is_set():
                return
            begun = time.monotonic()
            failure = None
            try:
                kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
                status, said = api.request(method, path, body, kind)
                if status != expected:
                    failure = f"{status} {said[:400]!r}"
            except Exception as error:  # whatever it is, the request failed
                failure = f"{type(error).__name__}: {error}"
                api.way.drop()
            count.add(method, path, begun, failure)
            ended.wait(max(0.0, pause - (time.monotonic() - begun)))
            if failure:
                break  # its objects may be missing: others are asked for


def settings(path):
    """Server and TLS settings of a kubeconfig with all in it, as the admin's is."""
    found = {}
    for line in open(path, encoding="utf-8"):
        key, _, value = line.strip().partition(":")
        found[key] = value.strip()
    contexts = []
    with tempfile.NamedTemporaryFile() as both:
        both.write(base64.b64decode(found["client-certificate-data"]) + b"\n" + base64.b64decode(found["client-key-data"]))
        both.flush()
        for protocol in ("http/1.1", "h2"):
            contexts.append(ssl.create_default_context(cadata=base64.b64decode(found["certificate-authority-data"]).decode()))
            contexts[-1].set_alpn_protocols([protocol])
            contexts[-1].load_cert_chain(both.name)
    return urllib.parse.urlparse(found["server"]).netloc, *contexts


def main():
    host, fresh, held = settings(sys.argv[1])
    seconds = float(sys.argv[2])
    rate = float(sys.argv[3]) if len(sys.argv) > 3 else 24.0
    workers = 10
    count, ended, apis, threads = Count(), threading.Event(), [], []
    for worker in range(workers):
        apis.append(Api(host, fresh, held, keeps=worker % 2 == 0))
        arguments = ((worker, worker / workers), apis[-1], workers / rate, count, ended)
        threads.append(threading.Thread(target=work, args=arguments, daemon=True))
        threads[-1].start()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if select.select([sys.stdin], [], [], min(0.5, until - time.monotonic()))[0] and not sys.stdin.read(1):
            break
    ended.set()
    for thread in threads:
        thread.join(LIMIT + 5)
    took = time.monotonic() - count.begun
    summary = {
        "seconds": round(took, 1),
        "requests": count.asked,
        "writes": count.written,
        "per_second": round(count.asked / took, 1),
        "failures": len(count.failures),
        "first_failure": round(count.failures[0][0], 1) if count.failures else None,
        "last_failure": round(count.failures[-1][0], 1) if count.failures else None,
        "slowest_seconds": round(count.slowest, 2),
        "repeated_refused": sum(api.repeated["refused"] for api in apis),
        "repeated_429": sum(api.repeated["429"] for api in apis),
        "repeated_ends": sum(api.repeated["ends"] for api in apis),
        "repeated_goaway": sum(api.repeated["goaway"] for api in apis),
    }
    print(json.dumps(summary))
    sys.exit(1 if count.failures else 0)


main()
