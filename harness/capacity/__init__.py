"""How much throughput masks leave at which batch size, from measured mask times and a curve of forward times.

`mask times + forward curve -> model -> rows -> table`. The model is `docs/capacity.md`, in `model.py`.
"""
