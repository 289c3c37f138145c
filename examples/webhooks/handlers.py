"""Handlers of couchdb-sidecar in Python: nothing but the standard library.

WEBHOOK_SECRET=whsec_… python3 handlers.py [port]
"""

import base64
import hashlib
import hmac
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))
FIVE_MINUTES = 300


class Refused(Exception):
    """Another try would not mend it: the document goes into `error`, with this code and reason."""

    def __init__(self, code, reason):
        super().__init__(reason)
        self.code = code


def order_paid(order, key):
    """The next document. `key` is the same for every try of this order: give it to the payment provider."""
    if order.get("total", 0) <= 0:
        raise Refused("nothing_to_pay", f"expected a total above 0, got {order.get('total')}")
    return {**order, "state": "invoiced", "invoice": f"invoice-{key[:8]}"}


HANDLERS = {"/order-paid": order_paid}


def is_signed(headers, body):
    """Standard Webhooks: https://www.standardwebhooks.com"""
    sent, at = headers.get("webhook-signature", ""), headers.get("webhook-timestamp", "")
    if not at.isdigit() or abs(time.time() - int(at)) > FIVE_MINUTES:
        return False
    signed = f"{headers.get('webhook-id')}.{at}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(expected, one) for one in sent.split(" "))


class Server(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        handler = HANDLERS.get(self.path)
        if not is_signed(self.headers, body):
            return self.answer(401, {"code": "not_signed", "detail": "expected a signature with our secret"})
        if not handler:
            return self.answer(404, {"code": "no_handler", "detail": f"there is no handler at {self.path}"})
        try:
            self.answer(200, handler(json.loads(body), self.headers["webhook-id"]))
        except Refused as refused:
            self.answer(422, {"code": refused.code, "detail": str(refused)})
        except Exception as error:  # it is tried again
            self.answer(500, {"code": type(error).__name__, "detail": str(error)})

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json" if status < 300 else "application/problem+json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8080
    server = ThreadingHTTPServer(("127.0.0.1", port), Server)
    print(f"listening on {server.server_port}", flush=True)
    server.serve_forever()
