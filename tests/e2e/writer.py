#!/usr/bin/env python3
"""writer.py DIRECTORY ACKNOWLEDGED HOST...: writes keys to etcd until its standard input is closed.

Three writers put written/WRITER-N, one after the other, through all hosts in turn, whether they are members or not. Each write
that etcd acknowledges is a line in the file ACKNOWLEDGED. DIRECTORY has ca.crt, admin.crt and admin.key.
"""
import base64
import http.client
import itertools
import json
import ssl
import sys
import threading

PAUSE = 0.1  # seconds between two writes of a writer
LIMIT = 3  # seconds that a write may take


class Writer(threading.Thread):
    def __init__(self, name, context, hosts, acknowledged, ended):
        super().__init__()
        self.label, self.context, self.hosts, self.acknowledged, self.ended = name, context, hosts, acknowledged, ended
        self.connections = {}

    def put(self, host, key):
        """Whether etcd acknowledged the write."""
        try:
            if host not in self.connections:
                self.connections[host] = http.client.HTTPSConnection(host, 2379, timeout=LIMIT, context=self.context)
            body = json.dumps({"key": base64.b64encode(key.encode()).decode(), "value": "eA=="})
            self.connections[host].request("POST", "/v3/kv/put", body)
            answer = self.connections[host].getresponse()
            return "revision" in answer.read().decode() and answer.status == 200
        except (OSError, http.client.HTTPException):
            self.connections.pop(host).close()
            return False

    def run(self):
        for number in itertools.count(1):
            key = f"written/{self.label}-{number}"
            for host in self.hosts[number % len(self.hosts):] + self.hosts[:number % len(self.hosts)]:
                if self.put(host, key):
                    self.acknowledged.write(key + "\n")
                    self.acknowledged.flush()
                    break
            if self.ended.wait(PAUSE):
                return


def main():
    directory, acknowledged, *hosts = sys.argv[1:]
    context = ssl.create_default_context(cafile=f"{directory}/ca.crt")
    context.load_cert_chain(f"{directory}/admin.crt", f"{directory}/admin.key")
    ended = threading.Event()
    with open(acknowledged, "a", encoding="utf-8") as file:
        writers = [Writer(name, context, hosts, file, ended) for name in "123"]
        for writer in writers:
            writer.start()
        sys.stdin.read()
        ended.set()
        for writer in writers:
            writer.join()


main()
