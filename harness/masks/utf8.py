"""Characters from bytes that come one at a time, so that a token may end in the middle of a character."""

LEAST = {1: 0x00, 2: 0x80, 3: 0x800, 4: 0x10000}
"""The smallest code point that n bytes may spell; a smaller one would be spelt too long."""
LAST = 0x10FFFF


def length(first: int) -> int:
    """How many bytes a character has that begins with the byte `first`; 0 where none does."""
    if first < 0x80:
        return 1
    if 0xC2 <= first <= 0xDF:
        return 2
    if 0xE0 <= first <= 0xEF:
        return 3
    return 4 if 0xF0 <= first <= 0xF4 else 0


def reach(begun: bytes) -> tuple[int, int]:
    """The code points that begin with the bytes `begun`, as a range with both ends inside; the first is larger than the
    last where there are none. Surrogates are not left out."""
    size = length(begun[0])
    if size == 0 or len(begun) > size or any(byte & 0xC0 != 0x80 for byte in begun[1:]):
        return 1, 0
    code = begun[0] if size == 1 else begun[0] & (0x7F >> size)
    for byte in begun[1:]:
        code = code << 6 | byte & 0x3F
    open_bits = 6 * (size - len(begun))
    return max(code << open_bits, LEAST[size]), min((code + 1 << open_bits) - 1, LAST)
