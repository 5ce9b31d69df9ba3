"""What a request asks of its processor inside a server."""

import msgspec

from harness.constraint import Constraint
from harness.method import AsyncProcessor, Processor


class Order(msgspec.Struct, frozen=True):
    """It travels as JSON in the request's own parameters."""

    method: Processor | AsyncProcessor
    constraint: Constraint
