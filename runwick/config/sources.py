"""What an operator sets around a program: ``RUNWICK_`` variables. They stand below the command line and above code.

=======================  =================================================================
RUNWICK_STORE            the store's URL, instead of the one in code; never shown
RUNWICK_EXECUTORS        how many executors the supervisor starts
RUNWICK_RUN_DIR          where a worker's run file lies
RUNWICK_NUMERIC_THREADS  threads of numeric libraries in each executor, or ``inherit``
RUNWICK_PRELOAD          modules that the zygote imports beside the application, with commas between
RUNWICK_<OPTION>         an option of `WorkerOptions`, `ExecutorOptions`, `ProducerOptions`, `SqliteOptions`,
                         `PostgresOptions` or `RedisOptions` by its name in capitals, e.g.
                         ``RUNWICK_LEASE_DURATION=90s``, ``RUNWICK_MEMORY_HARD=2GiB``
=======================  =================================================================

Other ``RUNWICK_`` names are the user's own, unless one looks like a slip of the pen: that is a problem, for a setting
that was meant and has no effect is worse than a refusal.
"""

import dataclasses
import difflib
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from runwick.config.bounds import Option, count_option, refusals, table
from runwick.config.durations import parse_duration
from runwick.config.numeric import parse_numeric_threads
from runwick.config.options import (
    ExecutorOptions,
    PostgresOptions,
    ProducerOptions,
    RedisOptions,
    SqliteOptions,
    WorkerOptions,
)
from runwick.config.sizes import parse_bytes
from runwick.contracts.errors import InvalidArgument, Problem

PREFIX: Final = "RUNWICK_"
STORE: Final = "RUNWICK_STORE"
EXECUTORS: Final = "RUNWICK_EXECUTORS"
RUN_DIR: Final = "RUNWICK_RUN_DIR"
NUMERIC_THREADS: Final = "RUNWICK_NUMERIC_THREADS"
PRELOAD: Final = "RUNWICK_PRELOAD"

_OPTIONS: Final[Mapping[str, Option]] = {
    EXECUTORS: count_option(1),
    **{
        PREFIX + name.upper(): option
        for options in (WorkerOptions, ExecutorOptions, ProducerOptions, SqliteOptions, PostgresOptions, RedisOptions)
        for name, option in table(options).items()
    },
}
KNOWN: Final = frozenset({STORE, RUN_DIR, NUMERIC_THREADS, PRELOAD, *_OPTIONS})

_CLOSE_ENOUGH: Final = 0.8

T = TypeVar("T", WorkerOptions, ExecutorOptions, ProducerOptions, SqliteOptions, PostgresOptions, RedisOptions)


@dataclasses.dataclass(frozen=True)
class Environment:
    """What the environment says; a value that cannot be read is a problem and otherwise not there."""

    store: str | None = dataclasses.field(default=None, repr=False)
    """The store's URL; it may hold a password, so it is not part of the repr."""
    executors: int | None = None
    numeric_threads: int | None = None
    """As `runwick.config.numeric.parse_numeric_threads` reads it."""
    preload: tuple[str, ...] | None = None
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Values of options by their name in code."""
    problems: tuple[Problem, ...] = ()

    def applied_to(self, code: T) -> T:
        """The options given in code with what the environment says instead; `runwick.config.check` checks them."""
        names = table(type(code))
        return dataclasses.replace(code, **{name: value for name, value in self.options.items() if name in names})


def read_environment(environ: Mapping[str, str]) -> Environment:
    """Read the ``RUNWICK_`` variables, with everything wrong among them as data."""
    problems: list[Problem] = []
    values: dict[str, Any] = {}
    for variable in sorted(name for name in environ if name.startswith(PREFIX)):
        if option := _OPTIONS.get(variable):
            try:
                values[variable.removeprefix(PREFIX).lower()] = _READERS[option.unit](environ[variable])
            except InvalidArgument as refused:
                problems.append(Problem(option.code, variable, f"{refused.message}."))
        elif variable not in KNOWN and (meant := _meant(variable)):
            problems.append(Problem("unknown_setting", variable, f"{variable} is no setting. Did you mean {meant}?"))
    executors = values.pop("executors", None)
    if executors is not None:
        option = _OPTIONS[EXECUTORS]
        problems += [Problem(option.code, EXECUTORS, why) for why in refusals(EXECUTORS, executors, option)]
    return Environment(
        store=environ.get(STORE),
        executors=executors,
        numeric_threads=_numeric_threads(environ, problems),
        preload=None if (named := environ.get(PRELOAD)) is None else named_between_commas(named),
        options=values,
        problems=tuple(problems),
    )


def named_between_commas(text: str) -> tuple[str, ...]:
    """The names between the commas, each once."""
    return tuple(dict.fromkeys(filter(None, text.split(","))))


def _numeric_threads(environ: Mapping[str, str], problems: list[Problem]) -> int | None:
    if (text := environ.get(NUMERIC_THREADS)) is None:
        return None
    try:
        return parse_numeric_threads(text)
    except InvalidArgument as refused:
        problems.append(Problem(refused.code, NUMERIC_THREADS, f"{refused.message}."))
        return None


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text, re.ASCII):
        raise InvalidArgument("invalid_policy", f"expected a whole number, got {text!r}")
    return int(text)


def _switch(text: str) -> bool:
    if text not in ("true", "false"):
        raise InvalidArgument("invalid_policy", f"expected true or false, got {text!r}")
    return text == "true"


_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "duration": parse_duration,
    "count": _count,
    "bytes": parse_bytes,
    "switch": _switch,
}


def _meant(variable: str) -> str | None:
    """The setting that an unknown variable is probably meant to be: the same first letter, as many words, and nearly
    the same letters. ``RUNWICK_RESTORE`` or ``RUNWICK_STORE_B`` is nobody's slip and stays the user's own."""
    name = variable.removeprefix(PREFIX)
    likeness = {known: _likeness(name, known.removeprefix(PREFIX)) for known in sorted(KNOWN)}
    closest = max(likeness, key=likeness.__getitem__)
    return closest if likeness[closest] >= _CLOSE_ENOUGH else None


def _likeness(name: str, setting: str) -> float:
    if name.replace("_", "").upper() == setting.replace("_", ""):
        return 1.0
    if name[:1] != setting[:1] or name.count("_") != setting.count("_"):
        return 0.0
    return difflib.SequenceMatcher(None, name, setting).ratio()
