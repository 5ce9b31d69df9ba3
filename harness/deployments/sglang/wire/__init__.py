"""SGLang's HTTP protocol, pure: bytes in and values out, without sockets, clocks or randomness.

`encode` writes requests, `sse` and `stream` read what arrives piece by piece, `answer` and `logprobs` read an answer,
`errors` reads every shape in which the server says no, `retry` says what is worth sending again and when.
"""
