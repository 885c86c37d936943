"""All results of a campaign: one row per cell and group of jobs, and their means over the seeds."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cpsched.errors import CampaignError, DocumentError, Fault
from cpsched.lab.bench.campaign import Campaign, Cell, Workload, workload_label
from cpsched.lab.bench.figures import FIGURES, Row, rows_of
from cpsched.metrics import MeanInterval, mean_interval, unserved_rank
from cpsched.report import CampaignCell
from cpsched.text import how_to_install
from cpsched.writing import whole_file

#: The file with the figures of all cells, in a campaign's folder.
RESULTS = "results.parquet"


#: The figures of one cell for all its jobs, or for one group of them.
Finding = tuple[Cell, Row]
#: The figures of cells by what is drawn for each: the workload and the seed.
Sample = tuple[Workload, int | None]
Cells = Mapping[Sample, Mapping[str, float | None]]


@dataclass(frozen=True, kw_only=True)  # no slots: the findings are grouped once, when a table first asks for them
class Results:
    """The results of the cells that have one."""

    campaign: Campaign
    findings: tuple[Finding, ...]
    #: Omissions and changes, by the workload's label.
    remarks: Mapping[str, Mapping[str, int]]
    #: Cells without a result, by the labels of workload and policy.
    missing: Mapping[tuple[str, str], int]

    @classmethod
    def of(cls, campaign: Campaign, cells: Iterable[tuple[Cell, Mapping[str, Any] | None]]) -> "Results":
        """Gather the results of a campaign's cells; None: the cell failed."""
        findings: list[Finding] = []
        remarks: dict[str, Mapping[str, int]] = {}
        missing: dict[tuple[str, str], int] = {}
        for cell, result in cells:
            workload = cell.workload.label
            if result is None:
                place = (workload, cell.contender.label)
                missing[place] = missing.get(place, 0) + 1
                continue
            findings.extend((cell, row) for row in rows_of(result))
            if result["remarks"]:
                remarks[workload] = result["remarks"]
        return cls(campaign=campaign, findings=tuple(findings), remarks=remarks, missing=missing)

    def keys(self, workload: str, by: str) -> list[str | None]:
        """Return the groups of a workload's jobs, in the order in which they were found; one for all jobs."""
        found = (row.key for cell, row in self.findings if cell.workload.label == workload and row.by == by)
        return list(dict.fromkeys(found))

    def cells(self, workload: str, contender: str, by: str = "total", key: str | None = None) -> Cells:
        """Return the cells of a row of a table: of a policy on a workload, for all jobs or one group of them."""
        return self._of_rows.get((workload, contender, by, key), {})

    @cached_property
    def _of_rows(self) -> dict[tuple[str, str, str, str | None], dict[Sample, Mapping[str, float | None]]]:
        rows: dict[tuple[str, str, str, str | None], dict[Sample, Mapping[str, float | None]]] = {}
        for cell, row in self.findings:
            place = cell.workload.label, cell.contender.label, row.by, row.key
            rows.setdefault(place, {})[cell.workload, cell.seed] = row.figures
        return rows


def mean_of(cells: Cells, figure: str, beside: Cells | None = None) -> MeanInterval | None:
    """Return the mean of a figure over the cells that have it; None if there are none.

    `beside`: cells by whose figures it is divided, each by that of the same sample; those of 0 do not count.
    """
    found = []
    for sample, figures in cells.items():
        value, other = figures[figure], 1 if beside is None else beside.get(sample, {}).get(figure)
        if value is not None and other:
            found.append(value / other)
    return mean_interval(found) if found else None


def won(ours: Cells, all_cells: Sequence[Cells], figure: str) -> MeanInterval | None:
    """Return the share of the samples that all contenders have in which none is before this one, or None.

    A contender that serves fewer jobs is behind; of those that serve the same, the least figure is first.
    """
    ranks = [
        {sample: (unserved_rank([one]), value) for sample, one in cells.items() if (value := one[figure]) is not None}
        for cells in (ours, *all_cells)
    ]
    shared = [sample for sample in ranks[0] if all(sample in of_one for of_one in ranks)]
    is_first = [ranks[0][sample] <= min(of_one[sample] for of_one in ranks) for sample in shared]
    return mean_interval(list(map(float, is_first))) if shared else None


def write_parquet(findings: Sequence[Finding], path: Path) -> None:
    """Write a row of the cell and all figures for each finding, whole or not. Raises `DocumentError` if it fails."""
    import pyarrow as pa
    from pyarrow import parquet

    numbers = {name: pa.int64() if is_integer else pa.float64() for name, is_integer in FIGURES.items()}
    names = ("workload", "sample", "model", "policy", "scheduler", "parameters", "predict", "by", "key")
    texts = dict.fromkeys(names, pa.string())
    cuts = {"load": pa.float64(), "malleable": pa.float64(), "seed": pa.int64()}
    flags = {"charge_overhead": pa.bool_()}
    schema = pa.schema([*(texts | cuts | flags | numbers).items()])
    table = pa.Table.from_pylist([_record(one) for one in findings], schema=schema)
    with whole_file(path) as unfinished:
        parquet.write_table(table, unfinished)


def read_cells(path: Path) -> tuple[CampaignCell, ...]:
    """Read what `write_parquet` has written: the figures of each cell over all its jobs, in the order of the file.

    Raises `CampaignError` if pyarrow is not installed. Raises `DocumentError` if it is no such file.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise CampaignError(f"The results of a campaign need pyarrow; {how_to_install('report')}") from error
    named = ["workload", "sample", "model", "load", "malleable", "policy", "seed", "by"]
    try:
        table = parquet.read_table(path)
        wanted = [*named, *(name for name in FIGURES if name in table.column_names)]
        rows = table.select(wanted).to_pylist()
    except (OSError, pa.ArrowInvalid, pa.ArrowKeyError) as error:
        raise DocumentError(
            str(path), [Fault("", f"Expected the results of a campaign as Parquet, got: {error}")]
        ) from error
    return tuple(
        CampaignCell(
            workload=workload_label(row["workload"], row["load"], row["malleable"], row["model"]),
            policy=row["policy"],
            replica=f"{row['sample']}, seed {row['seed']}",
            figures={name: row[name] for name in wanted[len(named) :]},
        )
        for row in rows
        if row["by"] == "total"
    )


def _record(one: Finding) -> dict[str, object]:
    """Return a finding as a row of the file."""
    cell, row = one
    workload, contender = cell.workload, cell.contender
    return {
        "workload": workload.name,
        "sample": workload.sample,
        "model": workload.model,
        "load": workload.load,
        "malleable": workload.malleable,
        "policy": contender.label,
        "scheduler": contender.scheduler,
        "parameters": json.dumps(contender.parameters, default=dict, sort_keys=True),
        "predict": contender.predict,
        "charge_overhead": contender.charge_overhead,
        "seed": cell.seed,
        "by": row.by,
        "key": row.key,
        **row.figures,
    }
