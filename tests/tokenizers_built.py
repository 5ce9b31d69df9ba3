"""Small tokenizers built in code, so that no test needs the network."""

import json
from functools import cache

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

TEXT = [
    "Yes, no, maybe: the quick brown fox said hello to 1234 lazy dogs; très bien, été.",
    '{"name": "value", "id": 12, "a": [true, false, null], "b c": -0.5e+3}',
    "no evidence found, no evidence, no; yes yes maybe maybe aaa abab ab ab abc abcé",
] * 4
"""No tokenizer learns 悪 or 😀, so each of these takes several tokens."""

SPECIAL = ["<unk>", "<s>", "</s>"]


@cache
def sentencepiece_style() -> Tokenizer:
    """A tokenizer as Llama 2 has: U+2581 for a space, `<0xNN>` for each byte of a character without a token."""
    trained = Tokenizer(models.BPE())
    trained.normalizer = normalizers.Replace(" ", "\u2581")
    trained.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=220, show_progress=False))
    learnt = json.loads(trained.to_str())["model"]
    pieces = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), *learnt["vocab"]]
    merges = [tuple(merge) for merge in learnt["merges"]]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens(SPECIAL)
    return tokenizer


@cache
def byte_level() -> Tokenizer:
    """A tokenizer as GPT-2 has: one printable character for each byte."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=460, special_tokens=["<|end|>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    return tokenizer
