"""One run, from a plan to records: start the deployment, make the prompts, warm up, ask every arm every example.

`plan -> deployment -> questions -> turns -> exchanges -> records`; the reports are made from the records alone.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec

from harness import manifest as manifests
from harness.blocks import Turn, turns
from harness.constraint import Labels
from harness.deployment import Deployment, DeploymentFactory, Restarting
from harness.exchange import Asker, Exchange, Question, digest, questions
from harness.explaining import explained, unexplained
from harness.folder import MANIFEST, RECORDS, WARM_UP, RunFolder, keep, open_folder, writing
from harness.gpu import sampled
from harness.judgement import record_of
from harness.label_confidence import LabelBook
from harness.load import Load, drive
from harness.method import Method, arm_name
from harness.preflight import Outcome, preflight
from harness.preflight import Question as Canary
from harness.progress import Progress
from harness.prompt import Prompter
from harness.record import Record
from harness.report import tokens
from harness.sayable import check_sayable
from harness.task import Task
from harness.tokens import vocabulary


class Plan(msgspec.Struct, frozen=True):
    """Everything a run is. `block` is the number of examples in a block, `warmup` the number of uncounted requests an
    arm sends first; `config` is the same as plain values, for the manifest."""

    task: Task
    methods: tuple[Method, ...]
    deployment: DeploymentFactory
    load: Load
    seed: int
    block: int
    warmup: int
    folder: Path
    config: dict[str, Any]


def run(plan: Plan) -> Path:
    """Run a plan, or what is missing of it; returns its folder. Raises `HarnessError` for what is wrong with the
    set-up. Ctrl-C leaves whole records behind."""
    return asyncio.run(_run(plan))


async def _run(plan: Plan) -> Path:
    with writing("the run folder", fix="name another folder with folder="):
        plan.folder.mkdir(parents=True, exist_ok=True)
    async with plan.deployment.start() as deployment:
        asker = _asker(plan, deployment)
        asked = questions(plan.task, asker.prompter, deployment.info.context)
        checked = await _preflight(plan, asker)
        checked.check()
        folder = open_folder(plan.folder, _manifest(plan, deployment, asked, checked), asked)
        if folder.session == 0:
            with writing("the run folder"):
                tokens.write(folder.path, asker.vocabulary)
        by_id = {question.row.id: question for question in asked}
        todo = turns(list(by_id), plan.methods, plan.block, plan.seed, folder.done())
        gpus: list[dict[str, Any]] = []
        with sampled(gpus):
            await _ask_all(plan, asker, folder, todo, by_id)
        if gpus:
            with writing("the manifest"):
                manifests.note_machine(folder.path / MANIFEST, {"gpus": gpus})
    return plan.folder


def _asker(plan: Plan, deployment: Deployment) -> Asker:
    info = deployment.info
    prompter = Prompter.load(info.tokenizer)
    spelled = vocabulary(prompter.tokenizer, info.width, info.stop_ids)
    check_sayable(plan.task.constraints, spelled)
    return Asker(deployment, plan.task, prompter, spelled, plan.seed)


def check(plan: Plan) -> Outcome:
    """Only what a run checks before its first request. Raises `HarnessError` where the deployment cannot be started."""

    async def checked() -> Outcome:
        async with plan.deployment.start() as deployment:
            return await _preflight(plan, _asker(plan, deployment))

    return asyncio.run(checked())


async def _preflight(plan: Plan, asker: Asker) -> Outcome:
    temperature = plan.task.config.temperature
    return await preflight(asker.deployment, Canary(plan.methods, asker.prompter, asker.vocabulary, temperature))


def _manifest(plan: Plan, deployment: Deployment, asked: Sequence[Question], checked: Outcome) -> manifests.Manifest:
    notes = dict.fromkeys(note for question in asked for note in question.prompt.notes)
    return manifests.Manifest(
        identity=manifests.identity(plan.config, deployment.info, digest(plan.task, asked)),
        task=plan.task.name,
        arms=tuple(arm_name(method) for method in plan.methods),
        seed=plan.seed,
        config=plan.config,
        deployment=deployment.info,
        data_digest=plan.task.rows.digest,
        examples=len(asked),
        unlabelled=sum(question.row.gold is None for question in asked),
        notes=(*plan.task.rows.notes, *notes),
        versions=manifests.versions(),
        machine=manifests.machine(),
        git=manifests.git_state(),
        sessions=(),
        startup_s=checked.startup_s,
        preflight=tuple(msgspec.to_builtins(verdict) for verdict in checked.verdicts),
    )


async def _warm_up(plan: Plan, asker: Asker, folder: RunFolder, todo: Sequence[Turn], asked: Sequence[Question]) -> int:
    """Uncounted requests of each arm that has work left, so that start-up (workers, token tables) and the first use of
    a constraint are not part of its throughput; the first line of an arm in `warmup.jsonl` is its cold one.

    Where every example has its own constraint, warming with one of them would make it cheaper than the rest: then only
    the start-up is paid, with a constraint of the harness's own.

    Returns how often the deployment had come back before: what came back since is cold again."""
    restarts = _restarts(asker.deployment)
    shared = len(set(plan.task.constraints.values())) <= 1
    warm = asker if shared else _with_own_constraint(asker)
    journal = folder.journal(WARM_UP)
    for method in plan.methods:
        if any(turn.method == method for turn in todo):
            for question in asked[: plan.warmup]:
                exchange = await warm.ask(question, method, f"{folder.session}.warm-up")
                keep(journal, record_of(warm.task, exchange, None, -1, folder.session))
    journal.close()
    return restarts


def _with_own_constraint(asker: Asker) -> Asker:
    own = dict.fromkeys(asker.task.constraints, Labels(("yes", "no")))
    return msgspec.structs.replace(asker, task=msgspec.structs.replace(asker.task, constraints=own))


async def _ask_all(
    plan: Plan, asker: Asker, folder: RunFolder, todo: Sequence[Turn], by_id: Mapping[str, Question]
) -> None:
    """Every turn, each on a warm deployment: one that died and came back is warmed up again."""
    journal, labels = folder.journal(RECORDS), LabelBook(asker)
    warm = await _warm_up(plan, asker, folder, todo, list(by_id.values()))
    progress = Progress(sum(len(turn.examples) for turn in todo))
    try:
        for turn in todo:
            if _restarts(asker.deployment) != warm:
                warm = await _warm_up(plan, asker, folder, todo, list(by_id.values()))
            asked = [by_id[example] for example in turn.examples]
            async with aclosing(_records(plan, asker, labels, turn, asked, folder.session)) as records:
                async for record in records:
                    keep(journal, record)
                    progress.add(record)
    finally:
        progress.close()
        journal.close()


def _restarts(deployment: Deployment) -> int:
    return deployment.restarts if isinstance(deployment, Restarting) else 0


async def _records(
    plan: Plan, asker: Asker, labels: LabelBook, turn: Turn, asked: Sequence[Question], session: int
) -> AsyncGenerator[Record, None]:
    """The records of one turn. Label probabilities are scored apart from the timed requests: before them where the
    prompt of the answer is known by then, else after them; so is what the answers' traces lack."""
    early = asker.task.config.sections[0] is asker.task.answer_section
    if early:
        await labels.score([Exchange(question, turn.method, (), question.prompt.ids) for question in asked])
    waiting: list[tuple[Exchange, float]] = []
    async with aclosing(_exchanges(plan, asker, turn, asked, session)) as arriving:
        async for exchange, late_s in arriving:
            if unexplained(asker.deployment, exchange) or (labels.concerns(exchange) and not early):
                waiting.append((exchange, late_s))
            else:
                yield record_of(asker.task, exchange, labels.of(exchange), turn.block, session, late_s)
    await labels.score([exchange for exchange, _ in waiting])
    for bare, late_s in waiting:
        exchange = await explained(asker.deployment, bare)
        yield record_of(asker.task, exchange, labels.of(exchange), turn.block, session, late_s)


def _exchanges(
    plan: Plan, asker: Asker, turn: Turn, asked: Sequence[Question], session: int
) -> AsyncGenerator[tuple[Exchange, float], None]:
    """The exchanges of one turn as they come, each with its lateness in seconds."""
    cache = f"{session}.{turn.block}.{arm_name(turn.method)}"

    async def ask(question: Question) -> Exchange:
        return await asker.ask(question, turn.method, cache)

    return drive(asked, ask, plan.load, plan.seed + turn.block)
