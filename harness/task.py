"""A task: examples, a prompt, sections, a constraint, a scorer. The config says it in a few lines; `resolve` reads
the files and checks everything that can be checked before a model is loaded."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from harness import dataset
from harness.constraint import Constraint, Grammar, Labels, Regex, Whitespace, check, json_schema
from harness.errors import ConfigError, ConstraintError, DataError
from harness.prompt import Template
from harness.scorers import Scorer


class Text(msgspec.Struct, frozen=True, tag="text", tag_field="kind", forbid_unknown_fields=True):
    """Text put into the answer as it is (a jinja2 template over the example's columns)."""

    text: str


class Generate(msgspec.Struct, frozen=True, tag="generate", tag_field="kind", forbid_unknown_fields=True):
    """A part that the model writes. Where `constrained`, the method and the task's constraint act on it; else it is
    free. `stop` are strings that end a free part (they are cut off); a constrained part ends by its constraint."""

    name: str
    max_tokens: int
    constrained: bool = False
    stop: tuple[str, ...] = ()


Section = Text | Generate


class LabelsSpec(msgspec.Struct, frozen=True, tag="labels", tag_field="kind", forbid_unknown_fields=True):
    """One of `labels`, or of the JSON list in `file`, or of the list in `column` of each example."""

    labels: tuple[str, ...] | None = None
    file: str | None = None
    column: str | None = None


class RegexSpec(msgspec.Struct, frozen=True, tag="regex", tag_field="kind", forbid_unknown_fields=True):
    """A full match of `pattern`, or of the one in `column` of each example."""

    pattern: str | None = None
    column: str | None = None


class JsonSchemaSpec(msgspec.Struct, frozen=True, tag="json_schema", tag_field="kind", forbid_unknown_fields=True):
    """A value of the schema in `schema`, in `file`, or in `column` of each example."""

    schema: dict[str, Any] | None = None
    file: str | None = None
    column: str | None = None
    whitespace: Whitespace = "flexible"


class GrammarSpec(msgspec.Struct, frozen=True, tag="grammar", tag_field="kind", forbid_unknown_fields=True):
    """A text of the grammar in `ebnf`, in `file`, or in `column` of each example."""

    ebnf: str | None = None
    file: str | None = None
    column: str | None = None


ConstraintSpec = LabelsSpec | RegexSpec | JsonSchemaSpec | GrammarSpec


class PromptConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The user turn (`file` or `text`, a jinja2 template over the example's columns) and the system turn, if any."""

    file: str | None = None
    text: str | None = None
    system: str | None = None


class TaskConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task as the config writes it."""

    name: str
    data: dataset.Data
    prompt: PromptConfig
    sections: tuple[Section, ...]
    scorer: Scorer
    constraint: ConstraintSpec | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    top_p: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0
    top_k: Annotated[int, msgspec.Meta(ge=0)] = 0


class Task(msgspec.Struct, frozen=True):
    """A task with its files read. `constraints` has one for each example id, and is empty where the task has none."""

    config: TaskConfig
    rows: dataset.Rows
    template: Template
    constraints: dict[str, Constraint]

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def generates(self) -> tuple[Generate, ...]:
        return tuple(section for section in self.config.sections if isinstance(section, Generate))

    @property
    def answer_section(self) -> Generate:
        """The section whose text is the answer: the last constrained one, else the last."""
        constrained = [section for section in self.generates if section.constrained]
        return (constrained or list(self.generates))[-1]

    @property
    def judged_names(self) -> frozenset[str]:
        """The sections whose tokens the confidences are taken over: the constrained ones, else the answer section."""
        constrained = frozenset(section.name for section in self.generates if section.constrained)
        return constrained or frozenset({self.answer_section.name})


def resolve(config: TaskConfig, seed: int) -> Task:
    """Read the files of a task. Raises `ConfigError`, `ConstraintError` or `DataError` naming what to mend."""
    _check_sections(config)
    template = Template(_prompt_source(config.prompt), f"task {config.name}: prompt")
    rows = dataset.load(config.data, seed)
    constraints = _constraints(config, rows)
    _check_golds(config, rows, constraints)
    for row in rows.rows:
        template.render(row.columns)
    return Task(config, rows, template, constraints)


def _check_sections(config: TaskConfig) -> None:
    generates = [section for section in config.sections if isinstance(section, Generate)]
    names = [section.name for section in generates]
    where = "task.sections"
    if not generates:
        raise ConfigError(f"{where}: none generates", "at least one part of kind generate", "add one")
    if len(set(names)) < len(names):
        raise ConfigError(f"{where}: two parts have one name: {names}", "names that differ", "rename one")
    if any(section.max_tokens < 1 for section in generates):
        raise ConfigError(f"{where}: max_tokens below 1", "a budget of at least one token", "raise max_tokens")
    if any(section.constrained and section.stop for section in generates):
        fix = "drop stop: a constraint says itself where the answer ends, and a stop string could cut a right one"
        raise ConfigError(f"{where}: a constrained part has stop strings", "none", fix)
    if any(section.constrained for section in generates) != (config.constraint is not None):
        fix = "mark a part with constrained: true, or give task.constraint"
        raise ConfigError(f"{where}: constrained parts and task.constraint do not go together", "both or neither", fix)


def _prompt_source(prompt: PromptConfig) -> str:
    given = [key for key, value in (("file", prompt.file), ("text", prompt.text)) if value is not None]
    if len(given) != 1:
        raise ConfigError(f"task.prompt: {given or 'nothing'} given", "exactly one of file and text", "give one")
    return prompt.text if prompt.text is not None else dataset.read_text(str(prompt.file), "task.prompt.file")


def _constraints(config: TaskConfig, rows: dataset.Rows) -> dict[str, Constraint]:
    spec = config.constraint
    if spec is None:
        return {}
    if spec.column is None:
        _check_one_source(spec)
        one = _checked(_fixed(spec), "task.constraint")
        return {row.id: one for row in rows.rows}
    _check_one_source(spec)
    checked: dict[str, Constraint] = {}
    for row in rows.rows:
        if spec.column not in row.columns:
            raise DataError(f"task.constraint.column: no {spec.column!r}", f"one of {sorted(row.columns)}", "mend it")
        checked[row.id] = _checked(_of(spec, row.columns[spec.column], f"example {row.id}"), f"example {row.id}")
    return checked


def _check_one_source(spec: ConstraintSpec) -> None:
    fields = [name for name in spec.__struct_fields__ if name != "whitespace"]
    given = [name for name in fields if getattr(spec, name) is not None]
    if len(given) != 1:
        fix = f"give one and set the others to null: {', '.join(fields)}"
        raise ConfigError(f"task.constraint: {given or 'nothing'} given", "exactly one source", fix)


def _fixed(spec: ConstraintSpec) -> Constraint:
    where = "task.constraint"
    match spec:
        case LabelsSpec(labels=labels) if labels is not None:
            return Labels(labels)
        case RegexSpec(pattern=pattern):
            return Regex(pattern or "")
        case JsonSchemaSpec(schema=schema) if schema is not None:
            return json_schema(schema, spec.whitespace)
        case GrammarSpec(ebnf=ebnf) if ebnf is not None:
            return Grammar(ebnf)
        case LabelsSpec(file=file) | JsonSchemaSpec(file=file) | GrammarSpec(file=file):
            source = dataset.read_text(str(file), f"{where}.file")
            return _of(spec, source if isinstance(spec, GrammarSpec) else _json(source, str(file)), where)


def _of(spec: ConstraintSpec, value: Any, where: str) -> Constraint:
    """The constraint that a value of a column or file stands for. JSON text is taken for what it says."""
    match spec:
        case LabelsSpec():
            return Labels(_label_list(_json(value, where) if isinstance(value, str) else value, where))
        case RegexSpec():
            return Regex(str(value))
        case JsonSchemaSpec():
            schema = _json(value, where) if isinstance(value, str) else value
            return json_schema(schema, spec.whitespace)
        case GrammarSpec():
            return Grammar(str(value))


def _label_list(value: Any, where: str) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(label, str) for label in value):
        return tuple(value)
    wrong = next((label for label in value if not isinstance(label, str)), value) if isinstance(value, list) else value
    raise ConfigError(f"{where}: the label {wrong!r} is not text", "a list of strings", "put it in quotes")


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{where}: not JSON: {error}", "JSON", "mend the text") from None


def _checked(constraint: Constraint, where: str) -> Constraint:
    try:
        check(constraint)
    except ConstraintError as error:
        raise ConstraintError(f"{where}: {error.found}", error.wanted, error.fix) from None
    return constraint


def _check_golds(config: TaskConfig, rows: dataset.Rows, constraints: Mapping[str, Constraint]) -> None:
    """A right answer that the constraint forbids would make every constrained arm wrong."""
    for row in rows.rows:
        constraint = constraints.get(row.id)
        if row.gold is None or not isinstance(constraint, Labels):
            continue
        if str(row.gold).strip() not in constraint.labels:
            found = f"data: example {row.id}: the right answer {row.gold!r} is not a label"
            raise DataError(found, f"one of {list(constraint.labels)[:8]}", "mend the labels or the data")
