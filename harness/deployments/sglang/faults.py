"""What can go wrong with one request to an SGLang server, after the retries that it was worth."""


class BackendError(Exception):
    """A request without an answer. `attempts` says how often it was sent, `status` is the server's code where it gave
    one, `server_kind` the server's name for the error (`BadRequestError`, `ProcessorError`), often empty."""

    def __init__(self, message: str, *, attempts: int = 1, status: int | None = None, server_kind: str = "") -> None:
        self.message = message
        self.attempts = attempts
        self.status = status
        self.server_kind = server_kind
        super().__init__(message)

    def __str__(self) -> str:
        told = "" if self.status is None else f" (status {self.status})"
        tries = "" if self.attempts == 1 else f" after {self.attempts} attempts"
        return f"{self.message}{told}{tries}"


class RejectedError(BackendError):
    """The server refused the request, and would refuse it again: a constraint it cannot compile, a prompt that is too
    long, a wrong key, a processor that failed."""


class UnavailableError(BackendError):
    """The server could not be reached, dropped the connection, or is overloaded."""


class TimedOutError(BackendError):
    """No complete answer came in time. The connection was closed, so that the server stopped working on it."""


class UnsoundAnswerError(BackendError):
    """An answer came, but something in it is missing or contradicts the rest: no number is made from it."""
