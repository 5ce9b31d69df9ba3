"""A causal language model in this process, through transformers: continuous batching, prefix reuse, every method.

`config.Embedded` is the door; it loads torch only when it is started. Inside, `deployment` answers callers, `loop` is
the thread that drives the model, `batch` seats requests in `slots`, `passes` chooses what is computed together, `step`
makes one token for each, `cache` shows the slots to transformers.
"""
