"""The parser of `harness.masks.sql_select` as processors that users write, for `method.processor.call` and the like."""

from harness.masks.sql_select import ENGINE
from harness.processors.engine_processor import async_processor_factory, processor_factory

factory = processor_factory(ENGINE)
async_factory = async_processor_factory(ENGINE)
