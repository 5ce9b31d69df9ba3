"""Names that both sides of a bundle agree on."""

RUNTIME = "harness.deployments.inside.runtime"
"""The module in the bundle that puts processors to work."""

WORKER = "harness.processors.worker"
"""The program of worker processes, which no other module imports."""

VOCABULARY = "vocabulary.msgpack"
"""The file in the bundle that holds the vocabulary."""
