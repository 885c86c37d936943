"""What the benches (``scripts/benches``, run by ``scripts/bench NAME``) share.

May import: the public doors of `cpsched`, and the naive twin in ``tests/oracle``. Begin with `workload.py`, the
machines and jobs that are planned, and `windows.py`, those of files; `measure.py` repeats, times and judges,
`charts.py` draws, `twin.py` compares with
the naive twin, `probes.py` runs as processes of its own. `evolving.py` is the experiment of
`scripts/reproduce_evolving`.
"""

import sys
from pathlib import Path

# windows, the naive twin and the browser's driver live with the tests, which are not installed
sys.path.append(str(Path(__file__).resolve().parents[2]))
