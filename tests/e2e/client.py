#!/usr/bin/env python3
"""client.py KUBECONFIG SECONDS [RATE]: asks a control plane RATE times a second (20), half of it writes, and counts failures.

Deployments and PropagationPolicies are made, changed and removed; Clusters and ConfigMaps are read. Half of the workers hold
their connection, half make a new one for each request. Repeated is only what nobody has seen: a connection that is refused
before anything was sent, and 429 with Retry-After. Ends after SECONDS, or when its standard input is closed.
Prints a line for each failure, with the time, and at last a summary as JSON; exit code 1 if something failed.
"""
import base64
import http.client
import json
import os
import select
import ssl
import sys
import tempfile
import threading
import time
import urllib.parse

LIMIT = 15  # seconds that a request may take


class Api:
    """One worker's way to the API: keeps its connection, or makes a new one for each request."""

    def __init__(self, server, context, keeps):
        self.host, self.context, self.keeps = server, context, keeps
        self.connection = None
        self.repeated = {"refused": 0, "429": 0}

    def connect(self, until):
        """A connection that has been made; refused ones are repeated, as nothing was sent."""
        while True:
            connection = http.client.HTTPSConnection(self.host, timeout=LIMIT, context=self.context)
            try:
                connection.connect()
                return connection
            except ConnectionRefusedError:
                connection.close()
                if time.monotonic() > until:
                    raise
                self.repeated["refused"] += 1
                time.sleep(0.1)

    def request(self, method, path, body=None, kind="application/json"):
        until = time.monotonic() + LIMIT
        while True:
            if self.connection is None or self.closed():
                self.connection = self.connect(until)
            text = None if body is None else json.dumps(body)
            self.connection.request(method, path, text, {"Content-Type": kind, "Accept": "application/json"})
            answer = self.connection.getresponse()
            said = answer.read()
            ends = answer.will_close or not self.keeps
            if ends:
                self.connection.close()
                self.connection = None
            after = answer.getheader("Retry-After")
            if answer.status == 429 and after and time.monotonic() < until:
                self.repeated["429"] += 1
                time.sleep(min(float(after), 2))
                continue
            return answer.status, said

    def closed(self):
        """Whether the other side has ended a connection that nobody used: looked at before anything is sent."""
        if not select.select([self.connection.sock], [], [], 0)[0]:
            return False
        self.connection.close()
        self.connection = None
        return True


def deployment(name):
    labels = {"app": name, "made-by": "client"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": labels}, "spec": spec}


def policy(name):
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    spec = {"resourceSelectors": [selector], "placement": {"clusterAffinity": {"clusterNames": ["nowhere"]}}}
    return {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": name}, "spec": spec}


def rounds(worker):
    """What one worker asks, one request after the other, for ever: half of them write."""
    number = 0
    while True:
        number += 1
        name = f"client-{os.getpid()}-{worker}-{number}"
        deployments = "/apis/apps/v1/namespaces/default/deployments"
        policies = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies"
        clusters = "/apis/cluster.karmada.io/v1alpha1/clusters"
        yield "POST", deployments, deployment(name), 201
        yield "GET", clusters, None, 200
        yield "POST", policies, policy(name), 201
        yield "GET", f"{policies}/{name}", None, 200
        yield "PATCH", f"{deployments}/{name}", {"spec": {"replicas": 2}}, 200
        yield "GET", clusters, None, 200
        yield "DELETE", f"{policies}/{name}", None, 200
        yield "GET", f"{deployments}/{name}", None, 200
        yield "DELETE", f"{deployments}/{name}", None, 200
        yield "GET", "/api/v1/namespaces/karmada-system/configmaps?limit=5", None, 200


class Count:
    def __init__(self):
        self.lock = threading.Lock()
        self.begun = time.monotonic()
        self.asked = self.written = 0
        self.slowest = 0.0
        self.failures = []

    def add(self, method, path, took, failure):
        with self.lock:
            self.asked += 1
            self.written += method != "GET"
            self.slowest = max(self.slowest, took)
            if failure:
                at = time.monotonic() - self.begun
                self.failures.append((at, failure))
                stamp = time.strftime("%H:%M:%S")
                print(f"{stamp} {at:7.1f} s  {method} {path}: {failure}", flush=True)


def work(worker, api, pause, count, ended):
    while not ended.wait(pause * worker[1]):  # spread over the first pause
        break
    for method, path, body, expected in rounds(worker[0]):
        if ended.is_set():
            return
        begun = time.monotonic()
        failure = None
        try:
            kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
            status, said = api.request(method, path, body, kind)
            if status != expected:
                failure = f"{status} {said[:200]!r}"
        except Exception as error:  # whatever it is, the request failed
            failure = f"{type(error).__name__}: {error}"
            if api.connection is not None:
                api.connection.close()
                api.connection = None
        took = time.monotonic() - begun
        count.add(method, path, took, failure)
        ended.wait(max(0.0, pause - took))


def settings(path):
    """Server and TLS settings of a kubeconfig with all in it, as the admin's is."""
    found = {}
    for line in open(path, encoding="utf-8"):
        key, _, value = line.strip().partition(":")
        found[key] = value.strip()
    context = ssl.create_default_context(cadata=base64.b64decode(found["certificate-authority-data"]).decode())
    with tempfile.NamedTemporaryFile() as both:
        both.write(base64.b64decode(found["client-certificate-data"]) + b"\n" + base64.b64decode(found["client-key-data"]))
        both.flush()
        context.load_cert_chain(both.name)
    return urllib.parse.urlparse(found["server"]).netloc, context


def main():
    server, context = settings(sys.argv[1])
    seconds = float(sys.argv[2])
    rate = float(sys.argv[3]) if len(sys.argv) > 3 else 20.0
    workers = 10
    count, ended, apis, threads = Count(), threading.Event(), [], []
    for worker in range(workers):
        apis.append(Api(server, context, keeps=worker % 2 == 0))
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
    }
    print(json.dumps(summary))
    sys.exit(1 if count.failures else 0)


main()
