"""Formats of JSON Schema that nobody has to check; here, so that mask engines need no validator to know them."""

ANNOTATIONS = frozenset({"int32", "int64", "float", "double", "byte", "binary", "password"})
"""Formats of OpenAPI that say how a value is stored, not what text it may be."""
