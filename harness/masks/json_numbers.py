"""JSON numbers between two bounds, in plain decimal notation (no exponent), as expressions."""

from collections.abc import Callable
from decimal import Decimal
from itertools import groupby

import msgspec

from harness.expression import Concat, Either, Expression, Repeat, chars, concat, literal, option

DIGITS = chars([(0x30, 0x39)])
INTEGER = concat(option(literal("-")), Either((literal("0"), concat(chars([(0x31, 0x39)]), Repeat(DIGITS, 0, None)))))
FRACTION = concat(literal("."), Repeat(DIGITS, 1, None))
EXPONENT = concat(
    chars([(0x45, 0x45), (0x65, 0x65)]), option(chars([(0x2B, 0x2B), (0x2D, 0x2D)])), Repeat(DIGITS, 1, None)
)
NUMBER = concat(INTEGER, option(FRACTION), option(EXPONENT))
Then = Callable[[str | None, str | None], Expression]


class Bounds(msgspec.Struct, frozen=True):
    """Which numbers are meant: `low` and `high` (None: no bound on that side), each itself excluded or not."""

    low: Decimal | None = None
    high: Decimal | None = None
    low_out: bool = False
    high_out: bool = False

    def mirrored(self) -> "Bounds":
        """The same numbers with the other sign."""
        low = None if self.high is None else -self.high
        high = None if self.low is None else -self.low
        return Bounds(low, high, self.high_out, self.low_out)

    def positive(self) -> "Bounds | None":
        """The part that is zero or more; None where there is none."""
        if self.high is not None and (self.high < 0 or (self.high == 0 and self.high_out)):
            return None
        if self.low is None or self.low < 0:
            return Bounds(Decimal(0), self.high, False, self.high_out)
        return self


def number(bounds: Bounds, whole: bool) -> Expression:
    """The numbers within `bounds`; only whole ones, without a fraction, where `whole` says so."""
    if bounds == Bounds():
        return INTEGER if whole else NUMBER
    plain, minus = bounds.positive(), bounds.mirrored().positive()
    signed = [] if minus is None else [concat(literal("-"), _unsigned(minus, whole))]
    return Either((*([] if plain is None else [_unsigned(plain, whole)]), *signed))


def _unsigned(bounds: Bounds, whole: bool) -> Expression:
    """Numbers of each length that the bounds leave room for; without an upper bound, longer ones are all meant."""
    low = bounds.low or Decimal(0)
    shortest = len(_parts(low)[0])
    longest = shortest if bounds.high is None else len(_parts(bounds.high)[0])
    items = [_of_length(size, bounds, whole) for size in range(shortest, longest + 1)]
    if bounds.high is None:
        longer = concat(chars([(0x31, 0x39)]), Repeat(DIGITS, longest, None))
        items.append(longer if whole else concat(longer, option(FRACTION)))
    return Either(tuple(items))


def _of_length(size: int, bounds: Bounds, whole: bool) -> Expression:
    """Numbers with `size` digits before the point."""
    low, low_fraction = _parts(bounds.low or Decimal(0))
    from_here = low + low_fraction if len(low) == size else None
    to_here = None
    if bounds.high is not None:
        high, high_fraction = _parts(bounds.high)
        to_here = high + high_fraction if len(high) == size else None
    reader = _Digits(bounds.low_out, bounds.high_out, whole)
    return reader.whole_part(size, from_here, to_here, leading=size > 1)


class _Digits(msgspec.Struct, frozen=True):
    """Digit by digit: `low` and `high` are the digits of the bounds that the text has followed exactly so far, without
    zeros at their ends, or None where the text has already left them on the right side."""

    low_out: bool
    high_out: bool
    whole: bool

    def whole_part(self, left: int, low: str | None, high: str | None, leading: bool = False) -> Expression:
        """`left` more digits, then what may follow them."""
        if left == 0:
            end = [Concat(())] if self._may_end(low, high) else []
            tail = [] if self.whole else [concat(literal("."), self._fraction(low, high, first=True))]
            return Either((*end, *tail))
        return self._digit(low, high, leading, lambda low, high: self.whole_part(left - 1, low, high))

    def _fraction(self, low: str | None, high: str | None, first: bool) -> Expression:
        if low is None and high is None:
            return Repeat(DIGITS, 1 if first else 0, None)
        if not (low or high or first):
            return self._zeros(low, high)
        end = [Concat(())] if not first and self._may_end(low, high) else []
        more = self._digit(low, high, False, lambda low, high: self._fraction(low, high, first=False))
        return Either((*end, more))

    def _zeros(self, low: str | None, high: str | None) -> Expression:
        """The text equals its bounds so far: only zeros keep it there, another digit makes it larger."""
        zeros = Repeat(literal("0"), 0, None)
        larger = concat(zeros, chars([(0x31, 0x39)]), Repeat(DIGITS, 0, None))
        equal = [zeros] if self._may_end(low, high) else []
        return Either((*equal, larger) if high is None else tuple(equal))

    def _may_end(self, low: str | None, high: str | None) -> bool:
        above = low is None or (low == "" and not self.low_out)
        below = high is None or high != "" or not self.high_out
        return above and below

    def _digit(self, low: str | None, high: str | None, leading: bool, then: "Then") -> Expression:
        first = int(low[:1] or 0) if low is not None else 0
        last = int(high[:1] or 0) if high is not None else 9
        choices = [(d, _followed(low, d), _followed(high, d)) for d in range(max(first, leading), last + 1)]
        groups = [(key, [d for d, *_ in group]) for key, group in groupby(choices, key=lambda choice: choice[1:])]
        return Either(tuple(concat(chars([(0x30 + ds[0], 0x30 + ds[-1])]), then(*key)) for key, ds in groups))


def _followed(bound: str | None, digit: int) -> str | None:
    return bound[1:] if bound is not None and digit == int(bound[:1] or 0) else None


def _parts(value: Decimal) -> tuple[str, str]:
    """The digits before and after the point, without zeros at the end."""
    before, _, after = f"{value:f}".partition(".")
    return before, after.rstrip("0")
