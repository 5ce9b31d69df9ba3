"""One report over several runs whose examples are paired: other deployments, other flags, last week.

The same page as for one run, with arms named `run:arm`, and what was not the same in the runs said before any number.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.manifest import Manifest
from harness.metrics.pairing import same_arms
from harness.metrics.summarise import summarise
from harness.metrics.summary import Summary
from harness.metrics.targets import Targets
from harness.report import alike, goodput, html, markdown, tokens
from harness.report.files import make_folder, write_json, write_text
from harness.report.harvest import Harvest
from harness.report.html import Page
from harness.report.page import task_page
from harness.report.run_page import show_examples
from harness.report.setup import SetUp, is_greedy, read_manifest, set_up
from harness.report.sources import Source, Sources
from harness.report.write import EXAMPLE_BYTES


class Comparison(msgspec.Struct, frozen=True):
    """The numbers of a comparison, and where its page is."""

    summary: Summary
    html: Path


def write_comparison(run_folders: Sequence[Path], out: Path, targets: Targets | None = None) -> Comparison:
    """Compare runs; writes `comparison.json`, `comparison.md` and `comparison.html` into `out`. All runs are held to
    the same `targets` of goodput, else to the first that a run names. Raises `HarnessError` where nothing can be
    written."""
    make_folder(out)
    sources = Sources([Source(folder, name) for folder, name in zip(run_folders, names(run_folders), strict=True)])
    manifests = [read_manifest(source.folder) for source in sources.all]
    harvest = Harvest(sources)
    task = _joined([manifest.task for manifest in manifests])
    deployment = _joined([manifest.deployment.name for manifest in manifests])
    held, others = (targets, ()) if targets is not None else goodput.shared(manifests)
    runs = {source.name: manifest.arms for source, manifest in zip(sources.all, manifests, strict=True)}
    summary = summarise(
        harvest.lines(),
        task,
        deployment,
        manifests[0].seed,
        order=[f"{name}:{arm}" for name, arms in runs.items() for arm in arms],
        pairing=same_arms(runs),
        lines=sources.whole_lines(),
        greedy=all(map(is_greedy, manifests)),
        targets=held,
    )
    missing = [note for source in sources.all for note in alike.unfinished(source, summary.counts)]
    summary = msgspec.structs.replace(
        summary, notes=(*alike.differences(sources.all), *others, *missing, *summary.notes)
    )
    texts = _texts(sources, manifests)
    shown = show_examples(sources, summary, harvest, texts, EXAMPLE_BYTES)
    title = f"{task}: {' against '.join(source.name for source in sources.all)}"
    page = task_page(title, deployment, summary, harvest.reasons, texts, shown, _set_ups(sources, manifests))
    write_json(out / "comparison.json", summary)
    write_text(out / "comparison.md", markdown.render([page], title))
    write_text(out / "comparison.html", html.render(Page(title, deployment, (page,))))
    return Comparison(summary, out / "comparison.html")


def names(folders: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that tell the folders apart; numbers where two are the same folder."""
    paths = [folder.resolve() for folder in folders]
    if len(set(paths)) < len(paths):
        return [f"{path.name} {number}" for number, path in enumerate(paths, start=1)]
    for length in range(1, max(len(path.parts) for path in paths) + 1):
        ends = ["/".join(path.parts[-length:]) for path in paths]
        if len(set(ends)) == len(ends):
            return ends
    return [str(path) for path in paths]


def _joined(values: Sequence[str]) -> str:
    return " and ".join(dict.fromkeys(values))


def _texts(sources: Sources, manifests: Sequence[Manifest]) -> tokens.TokenTexts:
    """The texts of the tokens where all runs have one vocabulary; else ids stay numbers, as one id may be two texts."""
    first = manifests[0].deployment
    if any(manifest.deployment.fingerprint != first.fingerprint for manifest in manifests):
        return tokens.TokenTexts([])
    return tokens.read(sources.all[0].folder, first.stop_ids)


def _set_ups(sources: Sources, manifests: Sequence[Manifest]) -> SetUp:
    made = [set_up(source.folder, manifest) for source, manifest in zip(sources.all, manifests, strict=True)]
    rows = [(f"{s.name}: {name}", value) for s, one in zip(sources.all, made, strict=True) for name, value in one.rows]
    configs = (f"{s.name}\n{one.config}" for s, one in zip(sources.all, made, strict=True))
    return SetUp(tuple(rows), "\n\n".join(configs))
