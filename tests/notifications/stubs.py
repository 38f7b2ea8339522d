"""Local servers that answer as a provider would, and remember what they were asked."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass
class Asked:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass
class HTTPStub:
    """Answers with what is next: status, body and perhaps headers; ``None`` cuts the connection."""

    url: str = ""
    answers: list[tuple[Any, ...] | None] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)


@contextmanager
def http_stub() -> Iterator[HTTPStub]:
    stub = HTTPStub()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            address = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            query = dict(parse_qsl(address.query, keep_blank_values=True))
            stub.asked.append(Asked(self.command, address.path, query, headers, body))
            if (answer := stub.answers.pop(0)) is None:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            content = answer[1] if isinstance(answer[1], bytes) else json.dumps(answer[1]).encode()
            self.send_response(answer[0])
            self.send_header("Content-Length", str(len(content)))
            for name, value in dict(*answer[2:]).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST  # noqa: N815

        def log_message(self, *args: Any) -> None:
            pass

    with _serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        stub.url = f"http://127.0.0.1:{port}"
        yield stub


@contextmanager
def _serving(server: ThreadingHTTPServer) -> Iterator[int]:
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class SMTPStub:
    """Speaks as much SMTP as one mail needs. ``says`` replaces an answer; ``None`` cuts the connection."""

    port: int = 0
    says: dict[str, str | None] = field(default_factory=dict)
    mails: list[bytes] = field(default_factory=list)

    def serve(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as lines:
                self._talk(connection, lines)

    def _talk(self, connection: socket.socket, lines: Any) -> None:
        if not self._say(connection, "HELLO", "220 stub"):
            return
        for line in lines:
            verb = line[:4].decode().upper().strip()
            usual = {"DATA": "354 go on", "QUIT": "221 bye"}.get(verb, "250 ok")
            if not self._say(connection, verb, usual) or verb == "QUIT":
                return
            if verb == "DATA" and self.says.get("DATA", "354").startswith("354"):
                self.mails.append(b"".join(iter(lines.readline, b".\r\n")))
                if not self._say(connection, "END", "250 taken"):
                    return

    def _say(self, connection: socket.socket, verb: str, usual: str) -> bool:
        answer = self.says.get(verb, usual)
        if answer is None:
            return False
        connection.sendall(f"{answer}\r\n".encode())
        return True


@contextmanager
def smtp_stub() -> Iterator[SMTPStub]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stub = SMTPStub(port=listener.getsockname()[1])
        thread = Thread(target=stub.serve, args=(listener,))
        thread.start()
        try:
            yield stub
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
