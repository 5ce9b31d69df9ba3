"""The parser of `harness.masks.sql_select` as processors that users write: `call=harness.processors.sql_select:factory`."""

from harness.masks.sql_select import ENGINE
from harness.processors.engine_processor import async_processor_factory, processor_factory

factory = processor_factory(ENGINE)
async_factory = async_processor_factory(ENGINE)
