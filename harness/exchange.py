"""One arm's answer to one example: its sections one after another, each a request to the deployment.

The prompt of a section is the ids before it: the prompt, what was generated, what was inserted. They are joined as
ids, so every arm and every deployment continues from the same tokens.
"""

import hashlib
from collections.abc import Sequence

import msgspec

from harness.dataset import Row
from harness.deployment import Deployment
from harness.errors import ConfigError
from harness.method import Method, Unconstrained, arm_name
from harness.prompt import Prompt, Prompter, Template
from harness.record import Part
from harness.request import Completion, Failure, Request, Sampling
from harness.task import Generate, Task, Text
from harness.vocabulary import Vocabulary


class Question(msgspec.Struct, frozen=True):
    """An example with its prompt made."""

    row: Row
    prompt: Prompt


class Exchange(msgspec.Struct, frozen=True):
    """What was asked and what came back, a part for each generated section; a failed part is the last.
    `answer_prompt_ids` are the ids in front of the answer section (None where it was not reached)."""

    question: Question
    method: Method
    parts: tuple[Part, ...]
    answer_prompt_ids: tuple[int, ...] | None


class Asker(msgspec.Struct, frozen=True):
    """Everything that asking an example needs, the same for all arms."""

    deployment: Deployment
    task: Task
    prompter: Prompter
    vocabulary: Vocabulary
    seed: int

    async def ask(self, question: Question, method: Method, cache: str) -> Exchange:
        """Ask one example of one arm, section by section; `cache` as in `harness.request.Request`."""
        ids, parts, answer_ids = question.prompt.ids, list[Part](), None
        for section in self.task.config.sections:
            match section:
                case Text(text=text):
                    rendered = Template(text, "task.sections.text").render(question.row.columns)
                    ids += self.prompter.encode(rendered)
                case Generate():
                    if section is self.task.answer_section:
                        answer_ids = ids
                    result = await self.deployment.generate(self._request(section, question.row, method, ids, cache))
                    constrained = section.constrained and not isinstance(method, Unconstrained)
                    parts.append(Part(section.name, constrained, result))
                    if isinstance(result, Failure):
                        break
                    ids += self._kept_ids(result)
        return Exchange(question, method, tuple(parts), answer_ids)

    def _request(self, section: Generate, row: Row, method: Method, ids: tuple[int, ...], cache: str) -> Request:
        config = self.task.config
        constraint = self.task.constraints.get(row.id) if section.constrained else None
        sampling = Sampling(
            section.max_tokens, config.temperature, config.top_p, config.top_k, seed_of(self.seed, row.id), section.stop
        )
        name = f"{cache}|{arm_name(method)}|{row.id}|{section.name}"
        return Request(name, row.id, ids, constraint, method, sampling, cache)

    def _kept_ids(self, completion: Completion) -> tuple[int, ...]:
        """The generated ids that stand for the text: without the stop token and without what a stop string cut off."""
        ids = completion.token_ids
        if ids and ids[-1] in self.vocabulary.stop_ids:
            ids = ids[:-1]
        if completion.finish != "stop_string":
            return ids
        wanted = completion.text.encode()
        whole = 0
        while whole < len(ids) and wanted.startswith(self.vocabulary.bytes_of(ids[: whole + 1])):
            whole += 1
        rest = wanted[len(self.vocabulary.bytes_of(ids[:whole])) :].decode(errors="ignore")
        return ids[:whole] + (self.prompter.encode(rest) if rest else ())


def seed_of(seed: int, example: str) -> int:
    """The sampling seed of an example: the same for every arm, another for every example (31 bits)."""
    return int.from_bytes(hashlib.sha256(f"{seed}|{example}".encode()).digest()[:4], "big") >> 1


def digest(task: Task, asked: Sequence[Question]) -> str:
    """Equal for the same examples, prompts and constraints in any order (SHA-256, 16 hex digits)."""
    lines = sorted(
        msgspec.json.encode([q.row.id, q.row.gold, q.prompt.ids, task.constraints.get(q.row.id)], order="sorted")
        for q in asked
    )
    return hashlib.sha256(b"\n".join(lines)).hexdigest()[:16]


def questions(task: Task, prompter: Prompter, context: int) -> tuple[Question, ...]:
    """The prompts of all examples. Raises `ConfigError` where none fits into the model's context."""
    made = tuple(
        Question(row, prompter.prompt(task.template.render(row.columns), task.config.prompt.system))
        for row in task.rows.rows
    )
    budget = sum(section.max_tokens for section in task.generates)
    if all(len(question.prompt.ids) + budget > context for question in made):
        shortest = min(len(question.prompt.ids) for question in made)
        raise ConfigError(
            f"task {task.name}: the shortest prompt has {shortest} tokens and the sections ask for {budget}",
            f"together at most the model's context of {context}",
            "shorten the prompt, lower max_tokens, or use a model with a longer context",
        )
    return made
