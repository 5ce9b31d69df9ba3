"""What is wrong with a set-up, said in three parts: what was found, what was wanted, what to do.

These are raised before the first request. What goes wrong with one request is a value
(`harness.request.Failure`), never one of these.
"""


class HarnessError(Exception):
    """A set-up that cannot be run soundly."""

    def __init__(self, found: str, wanted: str = "", fix: str = "") -> None:
        self.found = found
        self.wanted = wanted
        self.fix = fix
        super().__init__(found, wanted, fix)

    def __str__(self) -> str:
        parts = [
            self.found,
            f"wanted: {self.wanted}" if self.wanted else "",
            f"to mend: {self.fix}" if self.fix else "",
        ]
        return "; ".join(part for part in parts if part)


class ConfigError(HarnessError):
    """A configuration that does not say one thing clearly. `found` starts with the path of the key."""


class ConstraintError(HarnessError):
    """A constraint that no text, or every text, could meet, or that cannot be read."""


class DataError(HarnessError):
    """A dataset that is missing, or a row in it that cannot be used."""


class DeploymentError(HarnessError):
    """A model that cannot be loaded, or a server that cannot be reached or started, or that died."""


class PreflightError(HarnessError):
    """A deployment on which the numbers would be wrong."""


class ResumeError(HarnessError):
    """A run folder that belongs to another set-up."""


class Unsupported(Exception):  # noqa: N818 - an answer of an engine, not a fault
    """An engine cannot express this constraint; `reason` says why. It is counted as coverage, never as an error."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)
