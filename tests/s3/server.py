"""An S3 service with faults: moto, on a port of 127.0.0.1. It has the bucket `backups`, and one user. Prints the port and the user's keys, in
one line, and refuses all other keys. With TLS if CERTIFICATE and KEY, files in PEM format, are set.

PUT /faults with a JSON object sets what happens to the next requests: {"method": "PUT", "path": "part of the path and query", "kind": "503",
"count": 2, "after": 0}. DELETE /faults ends all of them. Kinds:
- 503: refused
- cut: the request was done, and the connection ends instead of an answer
- lost: as if done, and nothing was
- error: InternalError with the status 200, and nothing was done
- hang: no answer for ten minutes, and nothing was done
- damaged: a bit of the answer's body differs
- short: the answer ends early
GET /log has the method, path and query of all requests, one per line, with the encryption that they ask for.
"""

import json
import os
import socket
import threading
import time

# Every request must be signed.
os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "0"

from moto.core import DEFAULT_ACCOUNT_ID  # noqa: E402
from moto.iam import iam_backends  # noqa: E402
from moto.s3 import s3_backends  # noqa: E402
from moto.server import DomainDispatcherApplication, create_backend_app  # noqa: E402
from werkzeug.serving import make_server  # noqa: E402


class Service:
    def __init__(self):
        self.s3 = DomainDispatcherApplication(create_backend_app)
        self.lock = threading.Lock()
        self.faults = []
        self.log = []

    def fault(self, method, path):
        with self.lock:
            for fault in self.faults:
                if fault["method"] == method and fault["path"] in path and fault["count"] > 0:
                    if fault.get("after", 0) > 0:
                        fault["after"] -= 1
                        continue
                    fault["count"] -= 1
                    return fault["kind"]
        return None

    def __call__(self, environ, start_response):
        method = environ["REQUEST_METHOD"]
        path = environ["PATH_INFO"] + ("?" + environ["QUERY_STRING"] if environ["QUERY_STRING"] else "")
        if path == "/faults":
            if method == "DELETE":
                self.faults.clear()
            else:
                self.faults.append(json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))))
            start_response("200 OK", [("Content-Length", "0")])
            return [b""]
        if environ["PATH_INFO"] == "/log":
            text = "".join(f"{line}\n" for line in self.log).encode()
            start_response("200 OK", [("Content-Length", str(len(text)))])
            return [text]
        encryption = [environ.get(f"HTTP_X_AMZ_SERVER_SIDE_ENCRYPTION{name}") for name in ("", "_AWS_KMS_KEY_ID")]
        self.log.append(" ".join([method, path, *filter(None, encryption)]))
        kind = self.fault(method, path)
        if kind is None:
            return self.s3(environ, start_response)
        length = int(environ.get("CONTENT_LENGTH") or 0)
        if kind == "hang":
            time.sleep(600)
        if kind == "error":
            environ["wsgi.input"].read(length)
            text = b"<Error><Code>InternalError</Code><Message>try again</Message></Error>"
            start_response("200 OK", [("Content-Length", str(len(text)))])
            return [text]
        if kind in ("503", "lost", "hang"):
            environ["wsgi.input"].read(length)
            status = "503 Slow Down" if kind == "503" else "200 OK"
            start_response(status, [("Content-Length", "0"), ("ETag", '"d41d8cd98f00b204e9800998ecf8427e"')])
            return [b""]
        answered = []
        body = b"".join(self.s3(environ, lambda status, headers, info=None: answered.append((status, headers))))
        status, headers = answered[0]
        if kind == "cut":
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            return [b""]
        if kind == "damaged":
            start_response(status, headers)
            return [bytes([body[0] ^ 1]) + body[1:]]
        if kind == "short":
            start_response(status, headers)
            return [body[: len(body) // 2]]
        raise ValueError(kind)


s3_backends[DEFAULT_ACCOUNT_ID]["aws"].create_bucket("backups", "us-east-1")
iam = iam_backends[DEFAULT_ACCOUNT_ID]["aws"]
iam.create_user("aws", "tester")
key = iam.create_access_key("tester")
everything = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
iam.put_user_policy("tester", "everything", json.dumps(everything))
files = os.environ.get("CERTIFICATE") and (os.environ["CERTIFICATE"], os.environ["KEY"])
server = make_server("127.0.0.1", 0, Service(), threaded=True, ssl_context=files or None)
print(f"{server.server_port} {key.access_key_id} {key.secret_access_key}\n", end="", flush=True)
server.serve_forever()
