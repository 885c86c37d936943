"""Campaigns: many workloads, policies and seeds, simulated in parallel, with tables and charts of the results.

Begin with `campaigns.py`, the recipe, and `campaign.py`, the nouns. `reading.py` makes a campaign from a TOML file:
`campaign_model.py` defines its keys; `replicas.py` makes one of a single workload, and `replaying.py` plays the days of
a history again; `choosing.py` chooses the engine that the past speaks for. `loading.py` is the work of the workers;
`running.py` runs cells on one of `clusters.py` and keeps their results; `figures.py` and `results.py` name and gather
them; `tables.py` and `plots.py` show it.
"""

from typing import TYPE_CHECKING

from cpsched.doors import opener

if TYPE_CHECKING:
    from cpsched.lab.bench.campaign import Campaign, Cell, cells_of
    from cpsched.lab.bench.campaigns import Outcome, run_campaign
    from cpsched.lab.bench.choosing import EngineChoice, choose_engine
    from cpsched.lab.bench.clusters import at_address, local, on_slurm
    from cpsched.lab.bench.reading import read_campaign
    from cpsched.lab.bench.replaying import UNCHANGED, Days, Rules, days_of, replay
    from cpsched.lab.bench.results import RESULTS, read_cells
    from cpsched.lab.bench.running import Failure, Tally, by_error

__getattr__ = opener(__name__)
