"""The requests of jobs on Eurora: a table of frequencies, counted in the trace of spring 2014 (see `eurora.py`)."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """One shape of job, and how often it was seen; a campaign is a run of jobs that differ in arrival alone."""

    queue: str
    campaigns: int
    #: In all its campaigns.
    jobs: int
    #: Chunks, each on one node.
    units: int
    #: Of one chunk: cores, GPUs, MICs, MiB.
    cores: int
    gpus: int
    mics: int
    mem: int


#: Kinds seen at least three times, or with at least 2 % of their queue's cores. They cover 98 % of the jobs.
KINDS = (
    Kind("debug", 21, 1633, 1, 1, 0, 0, 4096),
    Kind("debug", 21, 26, 1, 1, 1, 0, 1024),
    Kind("debug", 7, 9, 1, 16, 0, 0, 14336),
    Kind("debug", 4, 8, 1, 8, 0, 1, 7168),
    Kind("debug", 5, 6, 1, 8, 0, 0, 1024),
    Kind("debug", 6, 6, 1, 4, 0, 0, 1024),
    Kind("debug", 6, 6, 1, 8, 0, 0, 5120),
    Kind("debug", 4, 5, 2, 8, 0, 0, 1024),
    Kind("debug", 5, 5, 1, 1, 2, 0, 14336),
    Kind("debug", 5, 5, 1, 4, 0, 0, 8192),
    Kind("debug", 1, 4, 1, 16, 0, 0, 10240),
    Kind("debug", 3, 4, 1, 4, 0, 0, 2048),
    Kind("debug", 1, 3, 1, 16, 0, 0, 5120),
    Kind("debug", 2, 3, 1, 16, 2, 0, 8192),
    Kind("debug", 3, 3, 1, 1, 1, 0, 5120),
    Kind("debug", 3, 3, 1, 2, 0, 1, 2048),
    Kind("debug", 3, 3, 1, 2, 2, 0, 1024),
    Kind("debug", 3, 3, 1, 2, 2, 0, 2048),
    Kind("debug", 3, 3, 1, 16, 0, 0, 1024),
    Kind("debug", 3, 3, 2, 1, 2, 0, 1024),
    Kind("debug", 3, 3, 2, 2, 0, 0, 8192),
    Kind("debug", 2, 2, 2, 16, 0, 0, 1024),
    Kind("debug", 2, 2, 2, 16, 0, 0, 14336),
    Kind("debug", 2, 2, 2, 16, 0, 1, 14336),
    Kind("parallel", 55, 208, 1, 1, 1, 0, 1024),
    Kind("parallel", 9, 114, 1, 1, 0, 0, 8192),
    Kind("parallel", 6, 97, 1, 16, 0, 0, 10240),
    Kind("parallel", 31, 59, 1, 8, 0, 0, 1024),
    Kind("parallel", 9, 34, 1, 8, 0, 0, 200),
    Kind("parallel", 2, 32, 1, 2, 2, 0, 1024),
    Kind("parallel", 21, 29, 1, 12, 0, 0, 12288),
    Kind("parallel", 22, 27, 1, 16, 0, 0, 14336),
    Kind("parallel", 7, 26, 1, 16, 2, 0, 14336),
    Kind("parallel", 15, 19, 1, 8, 0, 0, 14336),
    Kind("parallel", 10, 17, 1, 16, 2, 0, 12288),
    Kind("parallel", 9, 15, 2, 16, 0, 0, 1024),
    Kind("parallel", 9, 12, 1, 8, 0, 0, 7168),
    Kind("parallel", 6, 11, 1, 16, 2, 0, 8192),
    Kind("parallel", 5, 10, 1, 8, 0, 0, 4096),
    Kind("parallel", 10, 10, 1, 6, 0, 0, 14336),
    Kind("parallel", 2, 9, 1, 8, 1, 0, 4096),
    Kind("parallel", 3, 9, 8, 16, 2, 0, 14336),
    Kind("parallel", 4, 9, 1, 8, 0, 0, 3072),
    Kind("parallel", 4, 9, 1, 16, 1, 0, 4096),
    Kind("parallel", 6, 8, 1, 16, 0, 1, 14336),
    Kind("parallel", 7, 8, 8, 2, 0, 0, 4096),
    Kind("parallel", 4, 7, 1, 16, 2, 0, 1024),
    Kind("parallel", 7, 7, 1, 4, 0, 0, 4096),
    Kind("parallel", 3, 6, 1, 6, 2, 0, 4096),
    Kind("parallel", 3, 6, 1, 12, 0, 0, 14336),
    Kind("parallel", 4, 6, 1, 8, 0, 0, 15912),
    Kind("parallel", 6, 6, 1, 2, 2, 0, 2048),
    Kind("parallel", 6, 6, 1, 4, 0, 0, 1024),
    Kind("parallel", 1, 5, 8, 2, 0, 0, 3072),
    Kind("parallel", 5, 5, 1, 8, 0, 0, 10240),
    Kind("parallel", 5, 5, 6, 16, 0, 0, 14336),
    Kind("parallel", 5, 5, 8, 16, 0, 0, 14336),
    Kind("parallel", 4, 4, 4, 16, 0, 0, 4096),
    Kind("parallel", 4, 4, 4, 16, 2, 0, 14336),
    Kind("parallel", 2, 3, 5, 16, 2, 0, 14336),
    Kind("parallel", 3, 3, 1, 1, 0, 0, 1024),
    Kind("parallel", 3, 3, 1, 16, 2, 0, 2048),
    Kind("parallel", 3, 3, 2, 12, 0, 0, 12288),
    Kind("parallel", 3, 3, 4, 16, 2, 0, 1024),
    Kind("parallel", 2, 2, 8, 16, 0, 0, 5120),
    Kind("R", 1, 64, 1, 14, 0, 0, 8192),
    Kind("R", 2, 29, 1, 2, 2, 0, 1024),
    Kind("R", 7, 16, 1, 8, 0, 0, 1024),
    Kind("R", 8, 16, 1, 8, 0, 0, 7168),
    Kind("R", 2, 14, 1, 8, 0, 0, 4096),
    Kind("R", 2, 12, 1, 16, 0, 0, 1024),
    Kind("R", 8, 11, 1, 16, 0, 0, 13312),
    Kind("R", 7, 8, 1, 8, 0, 0, 6144),
    Kind("R", 3, 6, 8, 16, 0, 0, 13312),
    Kind("R", 4, 5, 1, 8, 0, 0, 14336),
    Kind("R", 4, 4, 1, 1, 0, 0, 1024),
    Kind("R", 1, 2, 32, 16, 0, 0, 13312),
    Kind("R", 2, 2, 4, 16, 0, 0, 13312),
    Kind("R", 2, 2, 11, 16, 0, 0, 14336),
    Kind("R", 1, 1, 16, 16, 0, 0, 13312),
    Kind("np_longpar", 4, 57, 1, 1, 0, 0, 1024),
    Kind("np_longpar", 4, 14, 1, 8, 0, 0, 1024),
    Kind("np_longpar", 2, 6, 1, 16, 2, 0, 1024),
    Kind("np_longpar", 3, 6, 1, 6, 2, 0, 4096),
    Kind("np_longpar", 2, 4, 1, 4, 0, 0, 14336),
    Kind("np_longpar", 2, 3, 1, 5, 2, 0, 4096),
    Kind("np_longpar", 2, 3, 1, 8, 0, 0, 14336),
    Kind("np_longpar", 2, 3, 1, 16, 2, 0, 2048),
    Kind("np_longpar", 2, 2, 1, 6, 2, 0, 2048),
    Kind("np_longpar", 2, 2, 1, 12, 0, 0, 14336),
    Kind("np_longpar", 1, 1, 1, 16, 2, 0, 14336),
    Kind("np_longpar", 1, 1, 6, 8, 0, 0, 14336),
)
