"""ClickHouse's engine (chdb) behind the part of its HTTP interface that
clickhouse-go speaks: a statement in the body or in ?query=, blocks in Native.

    python serve.py FOLDER PORT

It prints the port once it listens. The engine is ClickHouse's own, with its
tables on disk in FOLDER; the interface is ours, and answers one request after
another. Tests only: no users, no TLS, no compression, no sessions.

The first question of a client is who answers. It is told revision 0, at which
blocks have no frame: that is what the engine writes when nobody negotiates.
"""

import http.server
import os
import re
import struct
import sys
import tempfile
import threading
import urllib.parse

from chdb import session

folder, port = sys.argv[1], int(sys.argv[2])
engine = session.Session(folder)
turn = threading.Lock()

INSERT = re.compile(r"^\s*INSERT\s+INTO\s+(?P<table>[\w.`]+)\s*\((?P<columns>[^)]*)\)", re.I | re.S)


def text(s):
    raw = s.encode()
    return bytes([len(raw)]) + raw  # shorter than 128 bytes


def hello():
    """The answer's only row, framed as a client expects before it knows more."""
    version = engine.query("SELECT version()", "TabSeparated").bytes().strip().decode()
    out = b"\x01\x00\x02\xff\xff\xff\xff\x00" + bytes([4, 1])
    for name, kind, value in (
        ("displayName()", "String", text("chdb")),
        ("version()", "String", text(version)),
        ("revision()", "UInt32", struct.pack("<I", 0)),
        ("timezone()", "String", text("UTC")),
    ):
        out += text(name) + text(kind) + b"\x00" + value
    return out


def insert(match, body, settings):
    """Rows of a block, with what the client set for it."""
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".native") as file:
        file.write(body)
        file.flush()
        said = ", ".join("%s = '%s'" % (k, v.replace("'", "")) for k, v in settings.items())
        engine.query(
            "INSERT INTO %s (%s) %s SELECT %s FROM file('%s', 'Native')"
            % (match["table"], match["columns"], "SETTINGS " + said if said else "", match["columns"], file.name)
        )
    return b""


def answer(query, body, asked):
    if query.startswith("SELECT displayName()"):
        return hello()
    engine.query("USE " + (asked.get("database", ["default"])[0] or "default"))
    match = INSERT.match(query)
    if match:
        return insert(match, body, {k: v[0] for k, v in asked.items() if k.startswith("insert_")})
    return engine.query(query, "Native").bytes()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.read()
        asked = urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query)
        query = asked["query"][0] if "query" in asked else body.decode()
        try:
            with turn:
                status, out = 200, answer(query, body, asked)
        except Exception as err:  # the engine's own words, with its code
            status, out = 500, str(err).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(out)))
        self.end_headers()
        self.wfile.write(out)

    def read(self):
        if self.headers.get("Transfer-Encoding", "") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        out = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            out += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return out

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()  # ends with whoever started it
server.serve_forever()
