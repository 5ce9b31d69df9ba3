"""The mask benchmark: mask engines walked along known texts, token by token, without a model.

`config -> instances -> workers -> rows -> numbers -> report`. Each engine works in a process of its own that is ended
when a schema takes too long or too much memory, so that a bad schema costs one row.
"""
