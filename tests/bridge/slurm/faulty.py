"""Slurm's commands, of which one misbehaves when a test says so: it hangs, lies, stops half-way, or kills a daemon."""

from __future__ import annotations

import time
from pathlib import Path

__all__ = ["FaultyCommands"]

#: What each call is named in a test.
SCRIPT = """\
#!/bin/sh
here={here}; name=${{0##*/}}; real={real}/$name
case "$name $*" in
*--version) call=version;;
"squeue "*--format*) call=look;;
"squeue "*--Format*) call=lines;;
"squeue "*) call=jobs;;
"sinfo "*|*" nodes"*) call=nodes;;
"scontrol ") call=orders;;
*" partitions"*) call=partitions;;
*" reservations"*) call=reservations;;
*" licenses"*) call=licenses;;
*) call=config;;
esac
echo "$call" >> "$here/calls"
read -r what kind code 2>/dev/null < "$here/fault" || exec "$real" "$@"
[ "$what" = "$call" ] || [ "$what" = any ] || exec "$real" "$@"
case $kind in pause|die*) mv "$here/fault" "$here/taken" 2>/dev/null || exec "$real" "$@";; esac
echo "$call" >> "$here/hits"
case $kind in
hang) exec sleep 600;;
endless) exec yes;;
say) cat "$here/out"; cat "$here/err" >&2; exit "$code";;
half) "$real" "$@" > "$here/whole"; head -c $(($(stat -c %s "$here/whole") / 2)) "$here/whole"; exit 0;;
refuse) # no line reaches Slurm; the next one of its errors for each
  exec 3< "$here/err"
  while read -r verb job rest; do
    read -r said <&3 || {{ exec 3< "$here/err"; read -r said <&3; }}
    printf '%s for job %s\\n' "$said" "${{job#JobId=}}" >&2
  done
  exit 1;;
pause) : > "$here/paused"; while [ ! -e "$here/go" ]; do sleep 0.05; done; rm "$here/paused"; exec "$real" "$@";;
die-before) kill -9 $PPID; exit 1;;
die-half) head -n "$code" > "$here/lines"; kill -9 $PPID; exec "$real" < "$here/lines";;
die-after) "$real" "$@"; kill -9 $PPID; exit 0;;
die-late) cat > "$here/lines"; kill -9 $PPID; sleep "$code"; exec "$real" < "$here/lines";;
esac
"""


class FaultyCommands:
    """A directory with ``squeue``, ``sinfo`` and ``scontrol``, which are Slurm's own until a fault is set.

    A call is ``look``, ``lines``, ``jobs``, ``nodes``, ``partitions``, ``reservations``, ``licenses``, ``config``,
    ``version`` or ``orders``; ``any`` is each of them. Mutable.
    """

    def __init__(self, folder: Path, real: str) -> None:
        self.folder, self.path = folder, folder / "bin"
        self.path.mkdir(parents=True)
        for name in ("squeue", "sinfo", "scontrol", "sprio"):
            script = self.path / name
            script.write_text(SCRIPT.format(here=folder, real=real))
            script.chmod(0o755)

    def set(self, call: str, kind: str, code: int = 0, *, out: str = "", err: str = "") -> None:
        """Let a call misbehave from now on; one that pauses or kills the daemon does so once."""
        self.clear()
        (self.folder / "out").write_text(out)
        (self.folder / "err").write_text(err)
        new = self.folder / "new"
        new.write_text(f"{call} {kind} {code}\n")
        new.rename(self.folder / "fault")

    def clear(self) -> None:
        """Let all commands work again, those that pause too."""
        (self.folder / "fault").unlink(missing_ok=True)
        end = time.monotonic() + 2  # its daemon may have killed it
        while self.is_paused and time.monotonic() < end:
            (self.folder / "go").touch()
            time.sleep(0.05)
        for name in ("taken", "paused", "go"):
            (self.folder / name).unlink(missing_ok=True)

    def hits(self) -> int:
        """Return how often a command has misbehaved so far."""
        path = self.folder / "hits"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def calls(self, call: str) -> int:
        """Return how often a call was made so far."""
        path = self.folder / "calls"
        return path.read_text().splitlines().count(call) if path.exists() else 0

    @property
    def is_paused(self) -> bool:
        """Whether a command waits for `clear`."""
        return (self.folder / "paused").exists()
