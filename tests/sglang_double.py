"""A small, honest HTTP server that speaks SGLang's recorded shapes, for what the real one cannot be made to do: stall,
break off, be overloaded, have another tokenizer. It tokenizes for real; what `/generate` answers is scripted."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol


class Tokenizer(Protocol):
    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Sequence[int]) -> str: ...


class LongestMatch:
    """The longest token that fits, again and again: simple, and yet a token can span a join."""

    def __init__(self, tokens: dict[str, int]) -> None:
        self._tokens = tokens
        self._texts = {token: text for text, token in tokens.items()}

    def encode(self, text: str) -> list[int]:
        ids = []
        while text:
            longest = max((token for token in self._tokens if text.startswith(token)), key=len)
            ids.append(self._tokens[longest])
            text = text[len(longest) :]
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self._texts[token] for token in ids)


@dataclass
class Response:
    """What is sent: bytes, and between them seconds to wait, during which the client may hang up."""

    pieces: Sequence[bytes | float]
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Seen:
    """One request that came in; `hung_up` is set where the client left before the answer was whole."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    connection: int
    hung_up: threading.Event = field(default_factory=threading.Event)


def answer(text: str, ids: Sequence[int], prompt: Sequence[int], **meta: Any) -> Response:
    """A whole answer of `/generate`."""
    known = {"id": "r", "finish_reason": {"type": "stop", "matched": 2}, "prompt_tokens": len(prompt)}
    known |= {"completion_tokens": len(ids)} | meta
    return Response([json.dumps({"text": text, "output_ids": list(ids), "meta_info": known}).encode()])


@dataclass
class Double:
    """The server's state. `generate` is called for each request to `/generate` with its body."""

    tokenizer: Tokenizer
    generate: Callable[[dict[str, Any]], Response]
    template: str = "{content}"
    bos: tuple[int, ...] = ()
    info: dict[str, Any] = field(default_factory=lambda: {"version": "0.5.23", "served_model_name": "double"})
    seen: list[Seen] = field(default_factory=list)
    url: str = ""

    def respond(self, path: str, body: dict[str, Any]) -> Response:
        match path:
            case "/server_info":
                return _json(self.info)
            case "/tokenize" if "messages" in body:
                text = "".join(self.template.format(content=turn["content"]) for turn in body["messages"])
                return _json({"tokens": [*self.bos, *self.tokenizer.encode(text)]})
            case "/tokenize":
                return _json({"tokens": [self.tokenizer.encode(text) for text in body["prompt"]]})
            case "/detokenize":
                return _json({"text": [self.tokenizer.decode(row) for row in body["tokens"]]})
            case "/generate":
                return self.generate(body)
            case _:
                return Response([b'{"detail":"Not Found"}'], 404)

    def requests(self, path: str) -> list[Seen]:
        return [seen for seen in self.seen if seen.path == path]


def _json(value: Any) -> Response:
    return Response([json.dumps(value).encode()])


@contextmanager
def serving(double: Double) -> Iterator[Double]:
    """`double` on a free port, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))

        def _answer(self, body: dict[str, Any]) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            seen = Seen(self.path, headers, body, self.client_address[1])
            double.seen.append(seen)
            response = double.respond(self.path, body)
            try:
                self._send(response, seen)
            except OSError:
                seen.hung_up.set()
                self.close_connection = True

        def _send(self, response: Response, seen: Seen) -> None:
            started = False
            for piece in response.pieces:
                if isinstance(piece, float):
                    self._wait(piece)
                    continue
                if not started:
                    self._head(response)
                    started = True
                self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            if not started:
                raise OSError("the script ends without an answer: hang up")
            self.wfile.write(b"0\r\n\r\n")

        def _head(self, response: Response) -> None:
            self.send_response(response.status)
            for name, value in response.headers.items():
                self.send_header(name, value)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()

        def _wait(self, seconds: float) -> None:
            """Wait, and notice a client that hangs up meanwhile."""
            self.wfile.flush()
            self.connection.settimeout(seconds)
            began = time.monotonic()
            try:
                if self.connection.recv(1) == b"":
                    raise ConnectionResetError
            except TimeoutError:
                assert time.monotonic() - began >= seconds * 0.9
            finally:
                self.connection.settimeout(None)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    double.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield double
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
