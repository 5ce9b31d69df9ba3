"""Stands in for torchvision, whose wheel brings a CUDA build of torch. Only image models call it."""

from absent_package import stand_in

__version__ = "0.0"
"""transformers compares it; no feature of any release is here."""

stand_in(__name__)
