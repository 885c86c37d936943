"""The nouns of a report: what it says, section by section, for a page or as pictures."""

from dataclasses import dataclass

from cpsched.charts import Chart, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A whole page of its own that is shown in a section."""

    title: str
    html: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a report; all texts are any text."""

    title: str
    text: str = ""
    frame: Frame | None = None
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()
    #: Whether a page shows its charts and tables when they are asked for.
    is_folded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A report on a plan, on simulations or on a campaign."""

    #: What it is a report on: ``Plan``, ``Simulation``, ``Campaign``.
    kind: str
    name: str
    #: The result in plain words.
    sentences: tuple[str, ...]
    #: The figures at the top as (label, value).
    figures: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]

    @property
    def title(self) -> str:
        """The subject of the report, with its name."""
        return f"{self.kind}: {self.name}"

    @property
    def charts(self) -> tuple[Chart, ...]:
        """All charts, in order."""
        return tuple(chart for section in self.sections for chart in section.charts)
