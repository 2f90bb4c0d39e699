"""A stand-in for the hub's HTTP interface on loopback, with its faults on order.

Speaks what huggingface_hub's client asks for: model info with blobs, and resolve with the
hub's headers; large files are redirected to a second port, as to a content network.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

COMMIT = "57129260f3c4e9a1b2d3c4e5f60718293a4b5c6d"
LARGE = (".bin", ".safetensors", ".pt")


@dataclass
class Request:
    """What the client asked."""

    method: str
    path: str
    range: str | None
    token: str | None
    host: str


@dataclass
class Hub:
    """One repository and the faults to show with it."""

    repository: str
    files: dict[str, bytes]
    revisions: tuple[str, ...] = ("main", "5712926", COMMIT)
    gated: bool = False
    token: str | None = None  # wanted, if set
    cuts: list[int] = field(default_factory=list)  # bytes after which answers break off, in turn
    corrupt: bool = False  # large files arrive with a byte changed
    piece: int = 0  # bytes a write, if set, with a pause between
    whole_only: bool = False  # Range is not understood
    hold: int | None = None  # bytes after which large answers wait until `go` is set
    go: threading.Event = field(default_factory=threading.Event)
    held: threading.Event = field(default_factory=threading.Event)  # one waits now
    requests: list[Request] = field(default_factory=list)
    url: str = ""
    content_url: str = ""

    def fetched(self, method: str = "GET") -> list[str]:
        """Names of files asked for, in order."""
        marks = ("/resolve/", "/content/")
        paths = [r.path for r in self.requests if r.method == method]
        return [path.rpartition("/")[2] for path in paths if any(mark in path for mark in marks)]


def git_hash(content: bytes) -> str:
    """The hash git names a blob by."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def _answer(self) -> None:
            path = unquote(urlsplit(self.path).path)
            token = (self.headers["Authorization"] or "").removeprefix("Bearer ") or None
            hub.requests.append(
                Request(self.command, path, self.headers["Range"], token, self.headers["Host"])
            )
            if path.startswith("/content/"):
                return self._content(hub.files[path.removeprefix("/content/")], large=True)
            name, _, rest = (
                path.removeprefix("/api/models/")
                .lstrip("/")
                .partition("/revision/" if path.startswith("/api/") else "/resolve/")
            )
            if name != hub.repository:
                return self._refuse(404, "RepoNotFound", "Repository not found")
            if hub.token is not None and token != hub.token:
                message = "Invalid credentials in Authorization header" if token else "No access"
                return self._refuse(401, "" if token else "RepoNotFound", message)
            revision, _, file = rest.partition("/")
            if revision not in hub.revisions:
                return self._refuse(404, "RevisionNotFound", "Invalid rev id")
            if path.startswith("/api/"):
                return self._info()
            if hub.gated:
                return self._refuse(401, "GatedRepo", "Access to model is restricted")
            if file not in hub.files:
                return self._refuse(404, "EntryNotFound", "Entry not found")
            return self._resolve(file)

        def _info(self) -> None:
            siblings = []
            for name, content in hub.files.items():
                entry = {"rfilename": name, "size": len(content), "blobId": git_hash(content)}
                if name.endswith(LARGE):
                    digest = hashlib.sha256(content).hexdigest()
                    entry["lfs"] = {"sha256": digest, "size": len(content), "pointerSize": 134}
                siblings.append(entry)
            self._send(200, json.dumps({"id": name, "sha": COMMIT, "siblings": siblings}).encode())

        def _resolve(self, file: str) -> None:
            content = hub.files[file]
            large = file.endswith(LARGE)
            etag = hashlib.sha256(content).hexdigest() if large else git_hash(content)
            headers = {
                "X-Repo-Commit": COMMIT,
                "X-Linked-Etag": f'"{etag}"',
                "X-Linked-Size": str(len(content)),
                "ETag": f'"{etag}"',
            }
            if large:
                headers["Location"] = f"{hub.content_url}/content/{file}"
                return self._send(302, b"", headers)
            return self._content(content, large=False, headers=headers)

        def _content(
            self, content: bytes, large: bool, headers: dict[str, str] | None = None
        ) -> None:
            if large and hub.corrupt:
                content = content[:-1] + bytes([content[-1] ^ 1])
            status, headers, wanted = 200, dict(headers or {}), self.headers["Range"]
            if wanted and not hub.whole_only:
                start = int(wanted.removeprefix("bytes=").rstrip("-"))
                headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
                status, content = 206, content[start:]
            cut = hub.cuts.pop(0) if large and hub.cuts and self.command == "GET" else None
            if large and hub.hold is not None and self.command == "GET":
                return self._halting(status, content, headers, hub.hold)
            self._send(status, content, headers, cut)

        def _halting(self, status: int, body: bytes, headers: dict[str, str], hold: int) -> None:
            self.send_response(status)
            for name, value in (headers | {"Content-Length": str(len(body))}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body[:hold])
            hub.held.set()
            hub.go.wait()
            with suppress(OSError):  # the client may have left
                self.wfile.write(body[hold:])

        def _refuse(self, status: int, code: str, message: str) -> None:
            headers = {"X-Error-Message": message} | ({"X-Error-Code": code} if code else {})
            self._send(status, json.dumps({"error": message}).encode(), headers)

        def _send(
            self,
            status: int,
            body: bytes,
            headers: dict[str, str] | None = None,
            cut: int | None = None,
        ) -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                body = body if cut is None else body[:cut]
                for start in range(0, len(body), hub.piece or len(body) or 1):
                    self.wfile.write(body[start : start + (hub.piece or len(body))])
                    if hub.piece:
                        time.sleep(0.002)  # or they would arrive as one
            if cut is not None:
                self.close_connection = True

    return Handler


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """Serve a repository on two loopback ports; `hub.url` is the endpoint."""
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub)) for _ in range(2)]
    hub.url, hub.content_url = (f"http://127.0.0.1:{s.server_address[1]}" for s in servers)
    threads = [threading.Thread(target=s.serve_forever, args=(0.02,)) for s in servers]
    for thread in threads:
        thread.start()
    try:
        yield hub
    finally:
        hub.go.set()
        for server in servers:
            server.shutdown()
            server.server_close()
        for thread in threads:
            thread.join()


def files_of(folder: Path) -> dict[str, bytes]:
    """A folder's files as a repository's."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
