"""A client of SGLang servers, usable on its own from a notebook:

from harness.deployments.sglang import ChatMessage, SGLangBackend

with SGLangBackend("my-model") as backend:
    answer = backend.chat([ChatMessage("user", "Is the sky blue?")], constrain_labels=["yes", "no"])
    print(answer.label)
"""

from harness.deployments.sglang.backend import LLMBackend, SGLangBackend
from harness.deployments.sglang.faults import (
    BackendError,
    RejectedError,
    TimedOutError,
    UnavailableError,
    UnsoundAnswerError,
)
from harness.deployments.sglang.values import (
    ChatMessage,
    ChatResponse,
    Generated,
    ScoringResponse,
    ServerGrammar,
    ServerProcessor,
    Token,
    TokenLogprob,
)
from harness.deployments.sglang.wire.retry import Retries

__all__ = [
    "BackendError",
    "ChatMessage",
    "ChatResponse",
    "Generated",
    "LLMBackend",
    "RejectedError",
    "Retries",
    "SGLangBackend",
    "ScoringResponse",
    "ServerGrammar",
    "ServerProcessor",
    "TimedOutError",
    "Token",
    "TokenLogprob",
    "UnavailableError",
    "UnsoundAnswerError",
]
