"""The layers of docs/architecture.md: imports go sideways inside a package or down, never up."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAYERS: tuple[tuple[str, ...], ...] = tuple(
    tuple(names.split())
    for names in (
        """errors decoding constraint json_formats json_validity expression spelling regexes gbnf_reader grammar
        vocabulary sayable method mask request deployment""",
        """tokens dataset prompt scorers sql_result task record measures load blocks exchange explaining judgement
        label_confidence manifest folder progress masks processors metrics""",
        "deployments report preflight gpu mask_bench capacity",
        "experiment config commands __main__",
    )
)
FORBIDDEN = {
    "metrics": {"deployment", "deployments", "task", "experiment"},
    "masks": {"deployment", "deployments", "task", "experiment", "processors"},
    "report": {"deployments", "task", "experiment"},
}


def _level(module: str) -> int:
    head = module.removeprefix("harness.").split(".")[0]
    return next(level for level, names in enumerate(LAYERS) if head in names)


def _imports(path: Path) -> set[str]:
    """The modules of this package that a file imports, wherever in the file it does."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            named = {node.module} if node.module != "harness" else {f"harness.{alias.name}" for alias in node.names}
            found |= named
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.startswith("harness.") and not name.startswith("harness.__")}


def _modules() -> list[tuple[str, Path]]:
    paths = sorted((ROOT / "harness").rglob("*.py"))
    return [(".".join(path.relative_to(ROOT).with_suffix("").parts), path) for path in paths if path.parent != ROOT]


def test_every_module_stands_in_a_layer() -> None:
    unplaced = []
    for module, _ in _modules():
        head = module.removeprefix("harness.").split(".")[0]
        if head != "__init__" and not any(head in names for names in LAYERS):
            unplaced.append(module)
    assert unplaced == []


def test_the_text_says_the_same_layers() -> None:
    section = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").split("## Layers")[1].split("\n## ")[0]
    items = [item.split("\n\n")[0] for item in re.split(r"^\d\. ", section, flags=re.MULTILINE)[1:]]
    said = [" ".join(re.findall(r"`([^`]+)`", item)).replace("/", "").split() for item in items]
    assert [sorted(names) for names in said] == [sorted(names) for names in LAYERS]


def test_no_import_goes_up() -> None:
    wrong = []
    for module, path in _modules():
        if module.endswith("__init__") and module.count(".") == 1:
            continue
        wrong += [f"{module} imports {name}" for name in _imports(path) if _level(name) > _level(module)]
    assert wrong == []


def test_packages_do_not_know_what_they_must_not() -> None:
    wrong = []
    for module, path in _modules():
        forbidden = FORBIDDEN.get(module.removeprefix("harness.").split(".")[0], set())
        wrong += [f"{module} imports {name}" for name in _imports(path) if name.split(".")[1] in forbidden]
    assert wrong == []
