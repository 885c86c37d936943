"""Code under limits of the system, in processes of its own.

Python writes the bytecode of what it imports: under a limit of the size of files it leaves truncated files beside the
source, and every later process fails. So these processes write no bytecode, and pytest's own process gets no limit.
"""

from __future__ import annotations

import os
import subprocess
import sys

__all__ = ["with_small_files"]

_SMALL_FILES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
code = sys.argv[2]
del sys.argv[1:3]
exec(code)
"""


def with_small_files(code: str, *arguments: str, size: int, **env: str) -> subprocess.CompletedProcess[str]:
    """Run Python code with arguments, where no file can have more than `size` bytes, as on a full disk."""
    return subprocess.run(  # noqa: S603  # the interpreter that runs the tests
        [sys.executable, "-B", "-c", _SMALL_FILES, str(size), code, *arguments],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )
