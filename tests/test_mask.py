"""Masks as rows of bits, and the engine that a name means."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ConfigError
from harness.mask import allow, allowed, allows, empty_mask, words
from harness.masks import ENGINES, engine

WIDTH = 100


@given(tokens=st.sets(st.integers(0, WIDTH - 1)))
def test_what_is_set_is_what_is_read(tokens: set[int]) -> None:
    mask = empty_mask(WIDTH)
    allow(mask, np.array(sorted(tokens), dtype=np.int64))
    assert allowed(mask, WIDTH).tolist() == sorted(tokens)
    assert [i for i in range(WIDTH) if allows(mask, i)] == sorted(tokens)


def test_the_lowest_bit_of_the_first_word_is_token_zero() -> None:
    mask = empty_mask(64)
    allow(mask, np.array([0, 33, 63], dtype=np.int64))
    assert mask.view(np.uint32).tolist() == [1, 2 + 2**31]


def test_a_last_word_that_is_not_full_counts() -> None:
    assert [words(width) for width in (1, 32, 33, 49152)] == [1, 1, 2, 1536]


def test_bits_past_the_width_are_not_tokens() -> None:
    assert allowed(np.full(1, -1, dtype=np.int32), 5).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_that_ships_has_its_name_and_a_version(name: str) -> None:
    found = engine(name)
    assert found.name == name
    assert found.version()[0].isdigit()


def test_an_unknown_engine_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ConfigError, match=r"engine: 'xgramar' is not known.*llguidance"):
        engine("xgramar")


def test_a_users_own_engine_is_found_by_its_import_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_masks.py").write_text("from harness.masks.reference import ENGINE as MINE\n")
    monkeypatch.chdir(tmp_path)
    assert engine("my_masks:MINE").name == "reference"


@pytest.mark.parametrize("path", ["my_masks_that_is_not_there:ENGINE", "harness.mask:ENGINE", "harness.mask:words"])
def test_an_import_path_without_an_engine_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match="engine: "):
        engine(path)
