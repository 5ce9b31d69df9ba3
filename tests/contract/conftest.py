"""Each test of the suite runs once for every engine, on the vocabulary it names."""

import pytest

from harness.masks import ENGINES


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine_name" in metafunc.fixturenames:
        metafunc.parametrize("engine_name", ENGINES)
    if "vocabulary_name" in metafunc.fixturenames:
        metafunc.parametrize("vocabulary_name", ["sentencepiece", "byte_level"])
