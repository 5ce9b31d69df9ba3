"""The bytes of tokens, checked against the tokenizers' own decoding."""

import json
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models

from harness.deployments.embedded.weights import default_weights
from harness.errors import DataError
from harness.tokens import vocabulary
from harness.vocabulary import Vocabulary
from tests.tokenizers_built import byte_level, sentencepiece_style

TEXTS = st.text(alphabet=st.one_of(st.sampled_from('ab é悪👍\n\t{}"_'), st.characters(codec="utf-8")), max_size=20)


@settings(deadline=None, derandomize=True)
@given(text=TEXTS)
def test_the_tokens_of_a_text_spell_it_in_the_default_models_tokenizer(text: str) -> None:
    """That tokenizer drops bytes for which it has no token (0xF1 among them), so such texts are left out."""
    known = _smollm2_vocabulary()
    if set(text.encode()) <= {token[0] for token in known.tokens if token and len(token) == 1}:
        assert known.bytes_of(_smollm2().encode(text, add_special_tokens=False).ids) == text.encode()


def test_every_token_of_the_default_model_spells_what_its_tokenizer_decodes() -> None:
    known, tokenizer = _smollm2_vocabulary(), _smollm2()
    special = {token["id"] for token in json.loads(tokenizer.to_str())["added_tokens"] if token["special"]}
    assert {i for i, token in enumerate(known.tokens) if token is None} == special
    wrong = [i for i in range(49152) if i not in special and known.text([i]) != tokenizer.decode([i])]
    assert wrong == []


@settings(deadline=None, derandomize=True)
@given(text=TEXTS)
def test_the_tokens_of_a_text_spell_it_after_a_space_in_a_sentencepiece_tokenizer(text: str) -> None:
    """Its normaliser puts one space before every text. BC-05."""
    known = vocabulary(sentencepiece_style(), 1000, (2,))
    ids = sentencepiece_style().encode(text.replace("\u2581", ""), add_special_tokens=False).ids
    plain = text.replace("\u2581", "")
    assert known.bytes_of(ids) == (b" " + plain.encode() if plain else b"")


def test_in_the_middle_of_a_text_sentencepiece_tokens_spell_what_their_tokenizer_decodes() -> None:
    tokenizer, known = sentencepiece_style(), vocabulary(sentencepiece_style(), 1000, (2,))
    first = tokenizer.token_to_id("a")
    whole = [i for i, token in enumerate(known.tokens) if token and token.isascii()]
    assert [known.text([first, i]) for i in whole] == [tokenizer.decode([first, i]) for i in whole]


def test_the_marker_is_a_space_and_bytes_are_bytes() -> None:
    """BC-05."""
    known = vocabulary(sentencepiece_style(), 1000, (2,))
    assert known.tokens[sentencepiece_style().token_to_id("\u2581")] == b" "
    marked = {piece: i for piece, i in sentencepiece_style().get_vocab().items() if piece.rfind("\u2581") == 0}
    assert len(marked) > 5
    assert all(known.tokens[i] == b" " + piece[1:].encode() for piece, i in marked.items())
    assert known.tokens[sentencepiece_style().token_to_id("<0xF0>")] == b"\xf0"


def test_special_unknown_and_stop_tokens_spell_nothing() -> None:
    known = vocabulary(sentencepiece_style(), 1000, (2, 5))
    assert [known.tokens[i] for i in (0, 1, 2, 5)] == [None] * 4


def test_a_token_added_to_a_byte_level_tokenizer_spells_itself() -> None:
    tokenizer = Tokenizer.from_str(byte_level().to_str())
    tokenizer.add_tokens(["   ", "悪い"])
    known = vocabulary(tokenizer, 1000, (0,))
    assert known.tokens[tokenizer.token_to_id("   ")] == b"   "
    assert known.tokens[tokenizer.token_to_id("悪い")] == "悪い".encode()
    assert tokenizer.decode([tokenizer.token_to_id("悪い")]) == "悪い"


def test_a_unigram_tokenizer_is_read_too() -> None:
    tokenizer = Tokenizer(models.Unigram([("<unk>", 0.0), ("\u2581yes", -1.0), ("no", -2.0)], unk_id=0))
    tokenizer.decoder = decoders.Metaspace()
    assert vocabulary(tokenizer, 8, (7,)).tokens == (None, b" yes", b"no")


def test_folder_file_and_tokenizer_give_the_same_vocabulary(tmp_path: Path) -> None:
    byte_level().save(str(tmp_path / "tokenizer.json"))
    given = [vocabulary(source, 600, (0,)) for source in (byte_level(), tmp_path, tmp_path / "tokenizer.json")]
    assert given[0] == given[1] == given[2]
    assert given[0].fingerprint() == given[2].fingerprint() != vocabulary(byte_level(), 601, (0,)).fingerprint()


@pytest.mark.parametrize("decoder", [None, decoders.WordPiece(), decoders.Sequence([decoders.Fuse()])])
def test_a_tokenizer_of_another_style_is_refused(decoder: object) -> None:
    tokenizer = Tokenizer(models.WordPiece({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    if decoder is not None:
        tokenizer.decoder = decoder
    with pytest.raises(DataError, match="tokenizer: its decoder is"):
        vocabulary(tokenizer, 2, (0,))


def test_what_is_no_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot read"):
        vocabulary(tmp_path, 2, (0,))
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(DataError, match="is not JSON"):
        vocabulary(tmp_path, 2, (0,))
    with pytest.raises(DataError, match="is not a fast tokenizer"):
        vocabulary(object(), 2, (0,))


@cache
def _smollm2_vocabulary() -> Vocabulary:
    return vocabulary(default_weights(), 49152, (2,))


@cache
def _smollm2() -> Tokenizer:
    return Tokenizer.from_file(str(default_weights() / "tokenizer.json"))
