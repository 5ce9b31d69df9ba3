"""Stands in for SGLang's CUDA kernels, whose wheel needs a CUDA driver."""

from absent_package import stand_in

stand_in(__name__)
