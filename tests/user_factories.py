"""A shipped engine through the door of users' processors."""

from harness.masks import engine
from harness.processors.engine_processor import async_processor_factory, processor_factory

masking = processor_factory(engine("llguidance"))
async_masking = async_processor_factory(engine("llguidance"))
