"""Compare ways to constrain a language model's output: accuracy, calibration and throughput, with intervals.

The way of one run: `config -> task + arms + deployment -> preflight -> requests -> exchanges -> records ->
metrics -> report`. See docs/architecture.md for the words and the layers.
"""

__version__ = "0.1.0"
