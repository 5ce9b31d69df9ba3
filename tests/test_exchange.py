"""One answer, section by section, joined as ids."""

import asyncio
import math
from collections.abc import Sequence
from functools import lru_cache

import pytest

from harness.constraint import Labels, Regex
from harness.dataset import Data, Row, Rows
from harness.deployments.embedded.weights import default_weights
from harness.errors import ConfigError
from harness.exchange import Asker, Exchange, Question, digest, questions, seed_of
from harness.label_confidence import LabelBook, normalised
from harness.method import Native, Unconstrained
from harness.prompt import Prompt, Prompter, Template
from harness.request import Completion, Failure, Finish, Request, Scores, Timing
from harness.scorers import Exact
from harness.task import Generate, PromptConfig, Task, TaskConfig, Text
from harness.tokens import vocabulary
from harness.vocabulary import Vocabulary


class Scripted:
    """A deployment that says what it is told to, and keeps what it was asked."""

    def __init__(self, prompter: Prompter, *said: tuple[str, Finish, int] | Failure) -> None:
        self._prompter, self._said = prompter, list(said)
        self.asked: list[Request] = []
        self.scored: list[tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]] = []

    async def generate(self, request: Request) -> Completion | Failure:
        self.asked.append(request)
        said = self._said[len(self.asked) - 1]
        if isinstance(said, Failure):
            return said
        whole, finish, shown = said
        ids = self._prompter.encode(whole)
        if finish == "stop":
            ids = (*ids, self._prompter.tokenizer.eos_token_id)
        return Completion(request.id, whole[:shown], ids, finish, Timing(0.0, 0.1, 0.2), 1, len(ids))

    async def score(self, prompt_ids: Sequence[int], ids: Sequence[Sequence[int]]) -> tuple[Scores, ...]:
        self.scored.append((tuple(prompt_ids), tuple(tuple(one) for one in ids)))
        return tuple(Scores(tuple(one), (-0.5,) * len(one)) for one in ids)


@lru_cache
def _prompter() -> Prompter:
    return Prompter.load(str(default_weights()))


@lru_cache
def _vocabulary() -> Vocabulary:
    tokenizer = _prompter().tokenizer
    return vocabulary(tokenizer, len(tokenizer), (tokenizer.eos_token_id,))


NUMBER = Regex("[0-9]+")
NATIVE = Native()
ROW = Row("q", "q", {"text": "How many?"}, "12")
SECTIONS = (
    Generate("reasoning", 32, stop=("\n",)),
    Text("\nAnswer: "),
    Generate("answer", 8, constrained=True),
)


def _task(sections: tuple[Generate | Text, ...] = SECTIONS, constraint: Labels | Regex = NUMBER) -> Task:
    config = TaskConfig("t", Data("nowhere"), PromptConfig(text="{{ text }}"), sections, Exact())
    return Task(config, Rows((ROW,), "d"), Template("{{ text }}", "prompt"), {"q": constraint})


def _ask(deployment: Scripted, task: Task, method: Unconstrained | Native = NATIVE) -> Exchange:
    asker = Asker(deployment, task, _prompter(), _vocabulary(), 0)  # type: ignore[arg-type]
    question = Question(ROW, Prompt((1, 2, 3), "p"))
    return asyncio.run(asker.ask(question, method, "turn"))


def test_a_section_goes_on_from_the_ids_before_it() -> None:
    deployment = Scripted(_prompter(), ("3 * 4 = 12.", "stop", 99), ("12", "stop", 99))
    _ask(deployment, _task())
    first, second = deployment.asked
    encode = _prompter().encode
    assert first.prompt_ids == (1, 2, 3)
    assert second.prompt_ids == (1, 2, 3, *encode("3 * 4 = 12."), *encode("\nAnswer: "))


def test_what_a_stop_string_cut_off_is_not_in_the_next_prompt() -> None:
    deployment = Scripted(_prompter(), ("It is 12.\n\nSo", "stop_string", len("It is 12.")), ("12", "stop", 99))
    _ask(deployment, _task())
    said = _vocabulary().text(deployment.asked[1].prompt_ids[3:])
    assert said == "It is 12.\nAnswer: "


def test_the_constraint_acts_on_its_section_alone() -> None:
    deployment = Scripted(_prompter(), ("x", "stop", 99), ("12", "stop", 99))
    exchange = _ask(deployment, _task())
    assert [request.constraint for request in deployment.asked] == [None, NUMBER]
    assert [part.constrained for part in exchange.parts] == [False, True]
    assert [request.sampling.stop for request in deployment.asked] == [("\n",), ()]


def test_an_unconstrained_arm_is_asked_the_same_and_marked_as_free() -> None:
    deployment = Scripted(_prompter(), ("x", "stop", 99), ("12", "stop", 99))
    exchange = _ask(deployment, _task(), Unconstrained())
    assert [part.constrained for part in exchange.parts] == [False, False]


def test_a_failed_section_ends_the_answer() -> None:
    deployment = Scripted(_prompter(), Failure("r", "timeout", "too slow"))
    exchange = _ask(deployment, _task())
    assert len(exchange.parts) == 1
    assert exchange.answer_prompt_ids is None


def test_arms_share_seeds_and_examples_do_not() -> None:
    assert seed_of(0, "a") == seed_of(0, "a")
    assert len({seed_of(seed, example) for seed in (0, 1) for example in ("a", "b")}) == 4


def test_labels_are_scored_with_their_end_and_once_for_all_arms() -> None:
    """BC-02, BC-27: every token of the label and the stop token, joined as ids."""
    task = _task((Generate("label", 4, constrained=True),), Labels(("no", "no evidence")))
    deployment = Scripted(_prompter())
    asker = Asker(deployment, task, _prompter(), _vocabulary(), 0)  # type: ignore[arg-type]
    exchanges = [Exchange(Question(ROW, Prompt((1, 2), "p")), Native(), (), (1, 2))] * 2
    book = LabelBook(asker)
    asyncio.run(book.score(exchanges))
    asyncio.run(book.score(exchanges))
    end = _vocabulary().stop_ids[0]
    encode = _prompter().encode
    assert deployment.scored == [((1, 2), ((*encode("no"), end), (*encode("no evidence"), end)))]
    found = book.of(exchanges[0])
    assert found is not None
    assert sum(found.values()) == pytest.approx(1.0)


def test_label_probabilities_are_products_over_all_tokens() -> None:
    """BC-02 and BC-03: with the end, over the labels, in any order."""
    logs = {"no": 0.3, "no evidence": 0.7 * 0.9, "no evidence found": 0.7 * 0.1}
    for order in (list(logs), list(reversed(logs))):
        found = normalised({label: math.log(logs[label]) for label in order})
        assert found == pytest.approx(logs)
    shared = {"positive": 0.6 * 0.1, "possible": 0.6 * 0.9, "negative": 0.4}
    assert normalised({k: math.log(v) for k, v in shared.items()}) == pytest.approx(shared)
    length = {"Paris": math.log(0.7), "Longword": math.log(0.3 * 0.99**3)}
    assert max(normalised(length), key=normalised(length).__getitem__) == "Paris"


def test_the_digest_does_not_depend_on_the_order_and_does_on_the_constraint() -> None:
    rows = [Question(Row(name, name, {}, "1"), Prompt((1,), "p")) for name in ("q", "r")]
    assert digest(_task(), rows) == digest(_task(), rows[::-1])
    assert digest(_task(), rows) != digest(_task(constraint=Regex("[0-8]+")), rows)


def test_a_task_of_which_no_prompt_fits_the_context_is_refused() -> None:
    with pytest.raises(ConfigError, match="the model's context of 8"):
        questions(_task(), _prompter(), 8)
