"""Server-sent events out of bytes that arrive in pieces of any size."""

_ENDS = (b"\n\n", b"\r\n\r\n")


class EventDecoder:
    """Gives the data of each event once the whole event is there: a piece may end anywhere, also inside a character or
    inside the word `data`. Several data lines of one event are joined by a line break; comments and other fields are
    left out. `leftover` holds the bytes of an event that is not whole yet."""

    def __init__(self) -> None:
        self.leftover = b""

    def feed(self, piece: bytes) -> list[bytes]:
        """The data of the events that `piece` completes, in order."""
        self.leftover += piece
        events = []
        while (cut := _first_end(self.leftover)) is not None:
            data = _data(self.leftover[: cut[0]])
            self.leftover = self.leftover[cut[1] :]
            if data is not None:
                events.append(data)
        return events


def _first_end(buffer: bytes) -> tuple[int, int] | None:
    """Where the first event ends, and where the next begins."""
    found = [(at, at + len(end)) for end in _ENDS if (at := buffer.find(end)) >= 0]
    return min(found, default=None)


def _data(event: bytes) -> bytes | None:
    lines = [line.rstrip(b"\r") for line in event.split(b"\n")]
    values = [line[len(b"data:") :].removeprefix(b" ") for line in lines if line.startswith(b"data:")]
    return b"\n".join(values) if values else None
