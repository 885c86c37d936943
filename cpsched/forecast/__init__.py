"""When waiting jobs will start, with intervals: how long jobs run is learnt, futures are sampled and played.

Begin with `forecasts.py`, what users are told, with intervals set by what became of the forecasts before; `runtimes.py`
learns how long jobs run, `futures.py` samples and plays, with the kernels of `kernels.py`.
"""

from typing import TYPE_CHECKING

from cpsched.doors import opener

if TYPE_CHECKING:
    from cpsched.forecast.forecasts import Calibration, Forecast, Quantiles, forecast, learnt_from, warm_up_forecasts
    from cpsched.forecast.futures import Futures, by_priority, play_futures
    from cpsched.forecast.runtimes import Kind, RuntimeLearner

__getattr__ = opener(__name__)
