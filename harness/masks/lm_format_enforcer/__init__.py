"""lm-format-enforcer (https://github.com/noamgat/lm-format-enforcer): character-level parsers, in Python.

It takes labels, regexes and JSON schemas, and parsers that users write (`parser_engine`). Its own loop keeps a state
for every history of tokens, and its table of tokens needs an integration that does not import under transformers 5.
Here its parsers are walked over a table made from the vocabulary's bytes; what may be said stays the library's answer.
"""

from harness.masks.lm_format_enforcer.engine import Engine, parser_engine
from harness.masks.lm_format_enforcer.parsers import parser

ENGINE = Engine("lm_format_enforcer", parser)

__all__ = ["ENGINE", "Engine", "parser_engine"]
