"""``cpsched report``: a plan, simulations or a campaign as one page, or as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cpsched.cli.options import AS_JSON, INPUT_FILE, OUTPUT_FILE, InputFile, ends_in
from cpsched.cli.outputs import echo_output
from cpsched.cli.results import runs_in
from cpsched.text import printable

if TYPE_CHECKING:
    from cpsched.report import Report


_EXPECTED = "a plan, the folder of a simulation (cpsched simulate -o) or that of a campaign (cpsched bench)"


@click.command(
    "report",
    epilog="Example: cpsched report plan.json --instance window.json -o report.html; cpsched report out -o waits.pdf",
)
@click.argument("source", type=InputFile(or_folder=True), metavar="PLAN|RUN|CAMPAIGN")
@click.option(
    "-o",
    "--output",
    required=True,
    type=OUTPUT_FILE,
    callback=ends_in(".html", ".png", ".svg", ".pdf"),
    metavar="FILE",
    help="File for the report: .html is one page that opens offline; .png, .svg, .pdf are pictures of its charts.",
)
@click.option("--instance", type=INPUT_FILE, help="The instance of a plan.")
@click.option("--against", type=INPUT_FILE, metavar="PLAN", help="An earlier plan to compare a plan with.")
@AS_JSON
def command(source: Path, output: Path, instance: Path | None, against: Path | None, as_json: bool) -> None:
    """Report on a plan, simulations or a campaign: a page or pictures.

    PLAN is a plan document; it needs its --instance. RUN is the folder that simulate writes, of one policy or of
    several, which are compared, or the run.npz in it. CAMPAIGN is the folder that bench writes, or the results.parquet
    in it.
    """
    from cpsched.writing import write_bytes

    report = _report_on(source, instance, against)
    write_bytes(output, _drawn(report, output.suffix.removeprefix(".")))
    if as_json:
        echo_output("report", {"output": str(output), "title": report.title})
    else:
        click.echo(f"report: {printable(str(output))}")


def _drawn(report: Report, kind: str) -> bytes:
    from cpsched.charts import pictures
    from cpsched.report import report_page

    if kind == "html":
        return report_page(report).encode()
    return pictures(report.charts, kind, report.title)


def _report_on(source: Path, instance: Path | None, against: Path | None) -> Report:
    """Find out what was given, and return the report on it."""
    from cpsched.lab.bench import RESULTS, read_cells
    from cpsched.metrics import read_run
    from cpsched.report import campaign_report, run_report

    if source.is_dir():
        has_results = (source / RESULTS).is_file()
        runs = runs_in(source)
        if has_results and runs:
            raise click.UsageError(
                f"{printable(str(source))} has a campaign and simulations: name {RESULTS}, or a simulation's folder."
            )
        if not has_results and not runs:
            _refuse_folder(source)
    else:
        has_results, runs = source.suffix == ".parquet", [source] if source.suffix == ".npz" else []
    if not has_results and not runs:
        return _plan_report(source, instance, against)
    if instance is not None or against is not None:
        option = "--instance" if instance is not None else "--against"
        raise click.UsageError(f"{option} is for plans, got {'a campaign' if has_results else 'simulations'}.")
    if has_results:
        path = source / RESULTS if source.is_dir() else source
        return campaign_report(path.resolve().parent.name, read_cells(path))
    return run_report([read_run(path) for path in runs])


def _refuse_folder(folder: Path) -> None:
    names = sorted(path.name for path in folder.iterdir())
    shown = ", ".join(map(printable, names[:6])) + (f" and {len(names) - 6:,} more" if len(names) > 6 else "")
    old = "; simulate again: its results are not whole, they lack run.npz" if "summary.json" in names else ""
    raise click.UsageError(f"Expected {_EXPECTED}, got {printable(str(folder))} with {shown or 'nothing in it'}{old}.")


def _plan_report(source: Path, instance: Path | None, against: Path | None) -> Report:
    from cpsched.formats import check_belongs, load_document, parse_plan, read_instance, read_plan
    from cpsched.report import plan_report

    document = load_document(source)
    found = document.get("format")
    if not str(found).startswith("cpsched-plan/"):
        what = "an instance" if str(found).startswith("cpsched-instance/") else f"a document of format {found!r:.60}"
        raise click.UsageError(f"Expected {_EXPECTED}, got {what}: {printable(str(source))}.")
    plan = parse_plan(document, source=str(source))
    if instance is None:
        raise click.UsageError(
            f"The report on a plan needs the instance {printable(plan.instance)!r}: --instance FILE."
        )
    made_for = read_instance(instance)
    check_belongs(plan, made_for, str(source))
    return plan_report(made_for, plan, None if against is None else read_plan(against))
