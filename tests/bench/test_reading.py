"""Campaigns as TOML: what they mean, and how they are refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from cpsched.domain import FrozenMap
from cpsched.errors import DocumentError
from cpsched.formats.logs import LogOptions, MemoryField, Selection
from cpsched.lab.bench import Campaign, cells_of, read_campaign
from cpsched.lab.bench.campaign import Generated, InstanceFile, LogFile
from cpsched.lab.bench.campaign_model import Table
from cpsched.lab.bench.figures import GROUPS
from cpsched.lab.bench.loading import GENERATORS
from cpsched.lab.bench.results import Results
from cpsched.lab.bench.tables import as_markdown, filled
from cpsched.lab.sim import Prediction

WHOLE = """
name = "whole"
seeds = [3, 1]
page = "page.md"

[simulation]
predict = "all"
warm_up = 0.1
cool_down = 0.2

[[workload]]
name = "log"
log = "log.swf"
cluster = "machine.json"
cores_per_chunk = 4
memory_field = "bytes-per-job"
load = [0.8, 1.2]
[workload.selection]
first = 10
jobs = 20
submitted = [0, 100]
statuses = [0, 1]

[[workload]]
name = "window"
instance = "window.json"

[[workload]]
name = "lublin"
generator = "lublin"
parameters = {jobs = 10, streams = ["batch"]}
malleable = 0.5

[[policy]]
scheduler = "pbs_fifo_starve"
name = "pbs"
vary = {max_starve = [1, 2]}

[[policy]]
name = "as asked"
scheduler = "easy"
predict = false
charge_overhead = true

[[policy]]
scheduler = "sjf"
parameters = {backfill = "easy"}
predict = true

[[table]]
name = "all"
title = "All figures"
figures = ["wqt", "decisions.p99"]

[[table]]
name = "queues"
by = "queue"
figures = ["wait.mean"]

[[plot]]
name = "curve"
figure = "wqt"
over = "load"

[[published]]
source = "a paper"
workload = "log"
policy = "pbs max_starve=2"
figures = {wqt = 12, "wait.mean" = 3.5}
"""


def read(tmp_path: Path, text: str) -> Campaign:
    """Read a campaign in whose folder lie the files that it speaks of."""
    for name in ("log.swf", "machine.json", "window.json", "page.md"):
        (tmp_path / name).touch()
    path = tmp_path / "campaign.toml"
    path.write_text(text)
    return read_campaign(path)


def faults_of(tmp_path: Path, text: str) -> list[str]:
    """Return all that is wrong with a campaign."""
    with pytest.raises(DocumentError) as refused:
        read(tmp_path, text)
    return [str(fault) for fault in refused.value.faults]


def test_several_instances_are_samples_of_one_workload(tmp_path: Path) -> None:
    """Each file is a workload with the same label, whose cells have labels of their own; loads are scaled as ever."""
    (tmp_path / "other.json").touch()
    both = 'instance = ["window.json", "other.json"]\nload = [1, 2]'
    campaign = read(tmp_path, WHOLE.replace('instance = "window.json"', both))
    windows = [workload for workload in campaign.workloads if workload.name == "window"]
    assert [(window.label, window.sample) for window in windows] == [
        ("window, load 1", "window.json"),
        ("window, load 1", "other.json"),
        ("window, load 2", "window.json"),
        ("window, load 2", "other.json"),
    ]
    assert {workload.label: count for workload, count in campaign.samples.items()} == {
        "log, load 0.8": 1,
        "log, load 1.2": 1,
        "window, load 1": 2,
        "window, load 2": 2,
        "lublin, malleable 0.5": 1,
    }
    labels = [cell.label for cell in cells_of(campaign) if cell.contender.label == "as asked"]
    assert labels[2:4] == ["as asked on window, load 1, window.json", "as asked on window, load 1, other.json"]


def test_several_windows_are_samples_of_one_log(tmp_path: Path) -> None:
    """A log with several selections is one workload, with a cell for each; with one it is as before."""
    windows = WHOLE.replace(
        "[workload.selection]\nfirst = 10\njobs = 20\nsubmitted = [0, 100]\nstatuses = [0, 1]\n",
        "selection = [{ first = 10, jobs = 20 }, { first = 50, jobs = 20 }]\n",
    )
    campaign = read(tmp_path, windows)
    logs = [workload for workload in campaign.workloads if isinstance(workload.source, LogFile)]
    assert [(workload.label, workload.sample) for workload in logs] == [
        ("log, load 0.8", "window 0"), ("log, load 0.8", "window 1"),
        ("log, load 1.2", "window 0"), ("log, load 1.2", "window 1"),
    ]  # fmt: skip
    firsts = [workload.source.options.selection.first for workload in logs if isinstance(workload.source, LogFile)]
    assert firsts == [10, 50, 10, 50]
    assert [count for workload, count in campaign.samples.items() if workload.name == "log"] == [2, 2]
    assert {workload.sample for workload in read(tmp_path, WHOLE).workloads} == {None}
    (fault,) = faults_of(tmp_path, windows.replace("first = 50", "frist = 50"))
    assert fault == "workload[0].selection[1].frist: unknown key, did you mean first?"


def test_the_best_in_hindsight_is_one_of_the_policies(tmp_path: Path) -> None:
    """The policies of hindsight are known, and a figure says which of them is the best."""
    named = WHOLE.replace('title = "All figures"', 'won = "wqt"\nhindsight = ["as asked", "sjf backfill=easy"]')
    assert read(tmp_path, named).tables[0].hindsight == ("as asked", "sjf backfill=easy")
    assert faults_of(tmp_path, named.replace('won = "wqt"\n', "").replace('["as asked"', '["as aksed"')) == [
        'table[0].hindsight: Expected a known policy, got "as aksed", did you mean as asked?',
        "table[0].hindsight: Expected the figure that decides as won beside it, got none",
    ]


def test_a_workload_is_read_with_each_model(tmp_path: Path) -> None:
    """Models multiply the workloads of a malleable share, stand in their labels, and need such a share."""
    both = WHOLE.replace("malleable = 0.5", 'malleable = [0.5, 1]\nmodel = ["ideal", "worst"]')
    assert [workload.label for workload in read(tmp_path, both).workloads if workload.name == "lublin"] == [
        "lublin, malleable 0.5, ideal",
        "lublin, malleable 0.5, worst",
        "lublin, malleable 1, ideal",
        "lublin, malleable 1, worst",
    ]
    (fault,) = faults_of(tmp_path, WHOLE.replace("malleable = 0.5", 'model = "ideal"'))
    assert fault == "workload[2].model: Expected a malleable share beside it, got none"
    (fault,) = faults_of(tmp_path, WHOLE.replace("malleable = 0.5", 'malleable = 0.5\nmodel = "best"'))
    assert fault == "workload[2].model: Expected 'ideal' or 'worst', got \"best\""


def test_a_workload_is_read_with_each_error_and_failure(tmp_path: Path) -> None:
    """They multiply the workloads, and are in their names; what cannot be read is told with its place."""
    text = 'malleable = 0.5\nwalltimes = ["accurate", "f=2"]\nfailures = "mtbf=9000 mttr=60"'
    found = read(tmp_path, WHOLE.replace("malleable = 0.5", text)).workloads[-2:]
    assert [(one.name, one.walltimes, one.failures) for one in found] == [
        (f"lublin, walltimes {model}, failures mtbf=9000 mttr=60", model, "mtbf=9000 mttr=60")
        for model in ("accurate", "f=2")
    ]
    for key, what in (("walltimes", "Expected accurate, modal, or f=NUMBER"), ("failures", "Expected mtbf=SECONDS")):
        (fault,) = faults_of(tmp_path, WHOLE.replace("malleable = 0.5", f'{key} = "often"'))
        assert fault.startswith(f"workload[2].{key}: {what}")


SD_CAMPAIGNS = ("sd-cirne", "sd-cirne-ideal", "sd-ricc", "sd-curie", "sd-models", "sd-classes", "sd-seeds", "sd-value")


@pytest.mark.parametrize("name", SD_CAMPAIGNS)
def test_the_reproduction_of_sd_policy_is_a_campaign(repository: Path, name: str) -> None:
    """Each campaign can be read; its jobs are malleable by one of the paper's models, and the page names its command.
    The page has places for the tables of the first workload, and for no others (SD-13, SD-14).
    """
    path = repository / "campaigns" / f"{name}.toml"
    if "../shared" in path.read_text() and not (repository.parent / "shared").is_dir():
        pytest.skip("the logs are not here: ../shared/data/logs")
    campaign = read_campaign(path)
    assert all(workload.model is not None for workload in campaign.workloads)
    page = repository / "docs" / "sd-policy.md"
    assert f"cpsched bench campaigns/{name}.toml" in page.read_text()
    assert (campaign.page is not None) == (name == "sd-cirne")
    if campaign.page is not None:
        tables = {table.name: "here it is" for table in campaign.tables}
        assert "\nhere it is\n" in filled(campaign.page, tables, campaign=name)


def test_a_table_in_proportion_names_a_policy(tmp_path: Path) -> None:
    """Proportions are to one of the campaign's policies."""
    by_easy = WHOLE.replace('title = "All figures"', 'relative_to = "as asked"')
    assert [table.relative_to for table in read(tmp_path, by_easy).tables] == ["as asked", None]
    (fault,) = faults_of(tmp_path, by_easy.replace('relative_to = "as asked"', 'relative_to = "as aksed"'))
    assert fault == 'table[0].relative_to: Expected a known policy, got "as aksed", did you mean as asked?'


@pytest.mark.parametrize(
    ("name", "published"), [("bridi-windows", {"PBSFifo", "PBSWalltime", "CP Optimizer"}), ("bridi-online", set())]
)
def test_the_comparison_of_bridi_et_al_is_a_campaign(repository: Path, name: str, published: set[str]) -> None:
    """Both campaigns can be read; the paper's two baselines and our engine are charged for their time, what is
    published stands beside the windows, and the page has places for its tables and for no others (BRIDI-22).
    """
    if not (repository / ".." / "shared" / "data" / "eurora").is_dir():
        pytest.skip("the workloads of Eurora are not here: ../shared/data/eurora")
    campaign = read_campaign(repository / "campaigns" / f"{name}.toml")
    assert all(contender.charge_overhead for contender in campaign.contenders)
    schedulers = {contender.scheduler for contender in campaign.contenders}
    assert {"pbs_fifo_bf10", "pbs_walltime_bf400", "wspt_list", "portfolio"} <= schedulers
    assert {one.policy for one in campaign.published} == published
    assert campaign.page is not None
    assert "\nhere it is\n" in filled(
        campaign.page, {table.name: "here it is" for table in campaign.tables}, campaign=name
    )


def test_a_campaign_is_read_as_it_is_meant(tmp_path: Path) -> None:
    """Each key of the format has its effect; paths are relative to the campaign's folder."""
    campaign = read(tmp_path, WHOLE)
    assert (campaign.name, campaign.seeds, campaign.warm_up, campaign.cool_down) == ("whole", (3, 1), 0.1, 0.2)
    assert campaign.page == tmp_path / "page.md"
    slow, fast, window, lublin = campaign.workloads
    assert slow.source == LogFile(
        path=tmp_path / "log.swf",
        options=LogOptions(
            cluster=tmp_path / "machine.json",
            selection=Selection(
                first=10,
                jobs=20,
                submitted=(0, 100),
                statuses=(0, 1),
            ),
            cores_per_chunk=4,
            memory_field=MemoryField.BYTES_PER_JOB,
        ),
    )
    assert (slow.label, fast.label) == ("log, load 0.8", "log, load 1.2")
    assert window.source == InstanceFile(path=tmp_path / "window.json")
    assert lublin.source == Generated(generator="lublin", parameters=FrozenMap({"jobs": 10, "streams": ("batch",)}))
    assert lublin.malleable == 0.5
    contenders = [(one.label, dict(one.parameters), one.predict, one.charge_overhead) for one in campaign.contenders]
    assert contenders == [
        ("pbs max_starve=1", {"max_starve": 1}, Prediction.ALL, False),
        ("pbs max_starve=2", {"max_starve": 2}, Prediction.ALL, False),
        ("as asked", {}, None, True),
        ("sjf backfill=easy", {"backfill": "easy"}, Prediction.ORDER, False),
    ]
    assert [(table.name, table.heading, table.by) for table in campaign.tables] == [
        ("all", "All figures", "total"),
        ("queues", "queues", "queue"),
    ]
    assert [(plot.name, plot.figure, plot.over) for plot in campaign.plots] == [("curve", "wqt", "load")]
    assert dict(campaign.published[0].figures) == {"wqt": 12, "wait.mean": 3.5}


def test_cells_are_the_product(tmp_path: Path) -> None:
    """A generated workload has a cell for each policy and seed; one that no seed changes has one for each policy."""
    cells = list(cells_of(read(tmp_path, WHOLE)))
    seeds = {
        label: [cell.seed for cell in cells if cell.workload.label == label] for label in ("window", "log, load 0.8")
    }
    assert set(map(tuple, seeds.values())) == {(None,) * 4}
    assert [cell.seed for cell in cells if cell.workload.name == "lublin"] == [3] * 4 + [1] * 4
    assert cells[-2].label == "as asked on lublin, malleable 0.5, seed 1"


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    """A campaign with many faults is refused with each of them: where, expected, got, and what may be meant."""
    text = """
    name = "faulty campaign"
    sedes = [1]
    [simulation]
    warm_up = 0.6
    cool_down = 0.5
    predict = "yes"
    [[workload]]
    name = "a"
    generator = "lublin"
    parameters = {job = 10, cores = "many"}
    load = -1
    [[workload]]
    name = "b"
    instance = "missing.json"
    log = "log.swf"
    [[workload]]
    name = "c"
    generator = "lubin"
    [[policy]]
    scheduler = "pbs_fifo_starve"
    vary = {max_starv = [1]}
    [[policy]]
    scheduler = "pbs_fifo_starve"
    name = "negative"
    parameters = {max_starve = -1}
    [[policy]]
    scheduler = "esay"
    [[table]]
    name = "t"
    figures = ["wqt", "wait.maen"]
    [[table]]
    name = "u"
    by = "queue"
    figures = ["makespan"]
    [[plot]]
    name = "p"
    figure = "wqt"
    over = "malleable"
    [[published]]
    source = "s"
    workload = "d"
    policy = "p"
    figures = {wtq = 1}
    """
    found = "\n".join(faults_of(tmp_path, text))
    for expected in (
        'name: Expected a name of letters, digits, dots, dashes and underscores, got "faulty campaign"',
        "sedes: unknown key, did you mean seeds?",
        "simulation: Expected warm_up + cool_down < 1, got 1.1",
        'simulation.predict: Expected true, false, "order" or "all", got "yes"',
        "workload[0].parameters.job: unknown parameter, did you mean jobs?",
        "workload[0].parameters.cores: Expected an integer, got 'many'",
        "workload[0].parameters.jobs: Expected a value, got none",
        "workload[0].load: Expected a number > 0.0, got -1",
        "workload[1]: Expected one of instance, log and generator, got instance and log",
        'workload[1].instance: Expected a file, got "missing.json", which does not exist in',
        'workload[2].generator: Expected a known generator, got "lubin", did you mean lublin?',
        "policy[0].vary.max_starv: unknown parameter, did you mean max_starve?",
        "policy[1].parameters: Expected figures of 0 or more",
        'policy[2].scheduler: Expected a known scheduler, got "esay", did you mean easy?',
        'table[0].figures: Expected a known figure, got "wait.maen", did you mean wait.mean?',
        "table[1].figures: Expected figures that each queue has, got makespan",
        'published[0].figures: Expected a known figure, got "wtq", did you mean wqt?',
    ):
        assert expected in found
    assert len(found.splitlines()) == 17


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("seeds = [3, 1]", "seeds = [1, 1]"), "seeds: Expected values that differ, got 1 2 times"),
        (("seeds = [3, 1]", "seeds = 3"), "seeds: Expected a list, got 3"),
        (("first = 10", "frist = 10"), "workload[0].selection.frist: unknown key, did you mean first?"),
        (("submitted = [0, 100]", "submitted = [100, 0]"), "workload[0].selection: Expected submitted = [from, until]"),
        (("first = 10", "first = true"), "workload[0].selection.first: Expected an integer, got true"),
        (('"bytes-per-job"', '"bytes"'), "workload[0].memory_field: Expected 'kb-per-processor' or 'bytes-per-job'"),
        (('instance = "window.json"', ""), "workload[1]: Expected one of instance, log and generator, got none"),
        (("jobs = 10,", "jobs = 10.5,"), "workload[2].parameters.jobs: Expected an integer, got 10.5"),
        (("jobs = 10,", "jobs = 10, seed = 1,"), "workload[2].parameters.seed: unknown parameter (known: jobs"),
        (
            ('["batch"]', '"batch"'),
            "workload[2].parameters.streams: Expected a sequence, each element a text, got 'batch'",
        ),
        (
            ('name = "as asked"', 'name = "pbs max_starve=1"'),
            'policy: Expected names that differ, got "pbs max_starve=1" 2',
        ),
        (('name = "queues"', 'name = "all"'), 'table: Expected names that differ, got "all" 2 times'),
        (
            ("vary = {max_starve = [1, 2]}", "vary = {max_starve = 1}"),
            "policy[0].vary.max_starve: Expected a list, got 1",
        ),
        (
            ("vary = {max_starve", "parameters = {max_starve = 3}\nvary = {max_starve"),
            "policy[0].vary: Expected max_starve in parameters or in vary, got it in both",
        ),
        (('page = "page.md"', 'page = "no.md"'), 'page: Expected a file, got "no.md", which does not exist'),
        (("[simulation]", "[simulations]"), "simulations: unknown key, did you mean simulation?"),
        (("load = [0.8, 1.2]", "load = nan"), "workload[0].load: Expected a finite number, got nan"),
        (
            ('by = "queue"', 'by = "group"'),
            "table[1].by: Expected 'total', 'queue', 'size', 'user', 'class' or 'day', got \"group\"",
        ),
        (('figures = {wqt = 12, "wait.mean" = 3.5}', ""), "published[0].figures: Expected this key, got nothing"),
        (('workload = "log"', 'workload = "d"'), 'published[0].workload: Expected a known workload, got "d"'),
        (("load = [0.8, 1.2]", ""), "plot[0].over: Expected a workload with several values of load, got none"),
        (
            ('instance = "window.json"', 'instance = "window.json"\ncores_per_chunk = 4'),
            "workload[1].cores_per_chunk: unk",
        ),
        (("load = [0.8, 1.2]", "load = [0.8, -1]"), "workload[0].load[1]: Expected a number > 0.0, got -1"),
        (("load = [0.8, 1.2]", "load = [1, 1]"), "workload[0].load: Expected values that differ, got 1 2"),
        (('page = "page.md"', f'page = "{5000 * "x"}"'), 'page: Expected a file, got "xxx'),
        (("wqt = 12", 'wqt = "12"'), 'published[0].figures.wqt: Expected a number, got "12"'),
    ],
)
def test_one_typo_is_one_fault(tmp_path: Path, change: tuple[str, str], expected: str) -> None:
    """A single mistake in a good campaign is told once, with its place."""
    assert change[0] in WHOLE
    (fault,) = faults_of(tmp_path, WHOLE.replace(*change, 1))
    assert fault.startswith(expected)


def test_a_wrong_key_hides_no_other_fault(tmp_path: Path) -> None:
    """What is beside a wrong key is checked as well; what refers to a table with a wrong key is not."""
    text = WHOLE.replace('name = "whole"', "").replace('predict = "all"', 'predict = "yes"')
    text = text.replace("warm_up = 0.1", "warm_up = 0.9").replace("load = [0.8, 1.2]", "load = -1")
    text = text.replace('log = "log.swf"', 'log = "no.swf"').replace('name = "as asked"', "name = 5")
    text = text.replace('scheduler = "easy"', 'scheduler = "esay"').replace(
        "figures = {wqt = 12", "figures = {wtq = 12"
    )
    found = faults_of(tmp_path, text)
    assert [fault.partition(", got")[0] for fault in found] == [
        "simulation: Expected warm_up + cool_down < 1",
        'simulation.predict: Expected true, false, "order" or "all"',
        "workload[0].log: Expected a file",
        "workload[0].load: Expected a number > 0.0",
        "policy[1].name: Expected a text",
        "policy[1].scheduler: Expected a known scheduler",
        "published[0].figures: Expected a known figure",
        "name: Expected this key",
    ]


def test_the_groups_of_a_table_are_those_of_the_figures() -> None:
    """The file may name each group of jobs that has figures, and all jobs together."""
    assert set(get_args(get_type_hints(Table)["by"])) == {"total", *GROUPS}


def test_a_campaign_needs_workloads_and_policies(tmp_path: Path) -> None:
    """An empty file lacks a name, workloads and policies."""
    assert faults_of(tmp_path, "") == [
        "name: Expected this key, got nothing",
        "workload: Expected at least one table [[workload]], got none",
        "policy: Expected at least one table [[policy]], got none",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("workload = 5", "workload: Expected a list, got 5"),
        ("workload = [5]", "workload[0]: Expected a table, got 5"),
        ("simulation = 5", "simulation: Expected a table, got 5"),
    ],
)
def test_a_value_in_the_place_of_a_table_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    """Where a table is expected, nothing else is."""
    assert expected in faults_of(tmp_path, text)


def test_what_is_no_toml_is_refused_with_its_place(tmp_path: Path) -> None:
    """A syntax error is told with line and column; a file that is not there with its name."""
    (fault,) = faults_of(tmp_path, 'name = "a"\nseeds = [1,\n')
    assert fault.startswith("Expected TOML, got: ")
    with pytest.raises(DocumentError, match=r"none\.toml"):
        read_campaign(tmp_path / "none.toml")


@pytest.mark.parametrize("line", ['generator = "lublin"', 'scheduler = "easy"', 'workload = "log"', 'figure = "wqt"'])
def test_what_is_no_text_is_told_once(tmp_path: Path, line: str) -> None:
    """A name that is no text is refused as such, and not looked up as well."""
    assert line in WHOLE
    (fault,) = faults_of(tmp_path, WHOLE.replace(line, f"{line.partition(' ')[0]} = 5", 1))
    assert fault.endswith(": Expected a text, got 5")


@pytest.fixture
def docs_page(repository: Path) -> str:
    """Return the page that describes the format."""
    return (repository / "docs" / "campaigns.md").read_text()


def test_the_example_of_the_page_is_a_campaign(docs_page: str, tmp_path: Path) -> None:
    """What the page shows is read without a fault, once its files are there."""
    (example,) = re.findall(r"```toml\n(.*?)```", docs_page, flags=re.DOTALL)
    for name in re.findall(r'"([^" ]+\.(?:json|md|swf)(?:\.gz)?)"', example):
        (tmp_path / name).touch()
    campaign = read(tmp_path, example)
    assert campaign.workloads[0].label == "eurora, load 0.8, malleable 0.5, ideal"
    assert [contender.label for contender in campaign.contenders] == [
        "easy",
        "starving max_starve=3600",
        "starving max_starve=86400",
        "sjf",
    ]


def test_the_page_has_all_figures_and_generators(docs_page: str) -> None:
    """The page has a place for the list of all figures, and names each generator."""
    assert "<!-- generated: figures -->" in docs_page
    assert ", ".join(GENERATORS) in docs_page


def test_files_are_found_in_another_folder(tmp_path: Path) -> None:
    """By their names, and a first half as the whole log; what is nowhere is told with both places."""
    folder, data = tmp_path / "campaign", tmp_path / "data"
    folder.mkdir()
    data.mkdir()
    (data / "here.json").write_text("{}")
    (data / "log.swf").write_text("; nothing\n")
    text = """
    name = "c"
    [[workload]]
    name = "a"
    instance = "../away/here.json"
    [[workload]]
    name = "b"
    log = "../away/log.firsthalf.swf"
    [[policy]]
    scheduler = "easy"
    """
    campaign = folder / "c.toml"
    campaign.write_text(text)
    sources = [workload.source for workload in read_campaign(campaign, data).workloads]
    paths = [source.path for source in sources if isinstance(source, InstanceFile | LogFile)]
    assert paths == [data / "here.json", data / "log.swf"]
    (data / "here.json").unlink()
    with pytest.raises(DocumentError, match=r"does not exist in .*/campaign, nor by its name in .*/data"):
        read_campaign(campaign, data)


def test_an_optional_workload_is_left_out_where_its_file_is_missing(tmp_path: Path) -> None:
    """The others are played, and the table says what is missing; with its file it is a workload like any other."""
    (tmp_path / "here.json").write_text("{}")
    campaign = tmp_path / "c.toml"
    campaign.write_text(
        """
name = "c"
[[workload]]
name = "here"
instance = "here.json"
[[workload]]
name = "elsewhere"
instance = "elsewhere.json"
optional = true
[[policy]]
scheduler = "fcfs"
[[table]]
name = "t"
figures = ["wqt"]
"""
    )
    read = read_campaign(campaign)
    assert [workload.name for workload in read.workloads] == ["here"]
    assert read.left_out == ("elsewhere",)
    shown = as_markdown(Results.of(read, []), read.tables[0])
    assert "Left out, since their files were not found: elsewhere." in shown
    (tmp_path / "elsewhere.json").write_text("{}")
    whole = read_campaign(campaign)
    assert [workload.name for workload in whole.workloads] == ["here", "elsewhere"]
    assert whole.left_out == ()
