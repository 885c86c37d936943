"""Documents to domain values and back: instances, plans, and the short notations inside them.

May import: `arguments`, `errors`, `domain` and `writing`. Documents are checked here, once and completely; all
other rooms trust the result. Begin with `kinds.py`: the annotated fields of the nouns say what a document may have, and
it is checked, read, written and described from them. What documents say of a noun by other keys is in `job_reader.py`
and `rules_reader.py`. `instance_checks.py` checks relations between the parts, `faults.py` collects the faults,
`validation.py` checks instances that were built in Python, and `toml.py` reads TOML.
"""

from collections.abc import Callable
from pathlib import Path

from cpsched.arguments import at_the_door
from cpsched.domain import Instance, Plan
from cpsched.errors import Fault
from cpsched.formats.event_document import parse_events
from cpsched.formats.faults import Faults, Location, path_of, shown
from cpsched.formats.files import document_text, load_document, load_json, read_document, read_json, write_document
from cpsched.formats.hostlist import MAX_NODES, expand_hostlist, fold_hostlist
from cpsched.formats.instance_reader import instance_schema, instance_to_document, parse_instance, parse_part, trusted
from cpsched.formats.kinds import FORMS, Form
from cpsched.formats.notations import format_indices, parse_indices
from cpsched.formats.plan_document import check_belongs, parse_plan, plan_schema, plan_to_document
from cpsched.formats.request_text import ParsedRequest, format_request, parse_request
from cpsched.formats.toml import (
    FilePath,
    TomlFaults,
    keys_of,
    load_toml,
    parse_toml,
    read_settings,
    read_solve_params,
    read_table,
)
from cpsched.formats.validation import checked


@at_the_door
def read_instance(source: str | Path, *, on_warning: Callable[[Fault], None] | None = None) -> Instance:
    """Read an instance from a file, ``.json`` or gzipped.

    Raises
    ------
    DocumentError
        With everything that is wrong with it.
    """
    return parse_instance(load_document(source), source=str(source), on_warning=on_warning)


@at_the_door
def read_plan(source: str | Path) -> Plan:
    """Read a plan from a file, ``.json`` or gzipped.

    Raises
    ------
    DocumentError
        With everything that is wrong with it.
    """
    return parse_plan(load_document(source), source=str(source))


@at_the_door
def write_instance(instance: Instance, path: str | Path) -> None:
    """Write an instance, gzipped if `path` ends in ``.gz``; the file is whole or not there.

    Raises
    ------
    DocumentError
        If the file cannot be written.
    """
    write_document(instance_to_document(instance), path)


@at_the_door
def write_plan(plan: Plan, path: str | Path) -> None:
    """Write a plan, gzipped if `path` ends in ``.gz``; the file is whole or not there.

    Raises
    ------
    DocumentError
        If the file cannot be written.
    """
    write_document(plan_to_document(plan), path)
