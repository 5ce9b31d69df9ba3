"""One suite over all implementations of a protocol."""
