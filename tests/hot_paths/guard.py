"""Compares what was counted with the table of ceilings, and writes that table anew."""

import math
import sys
from collections.abc import Mapping
from typing import Final, NamedTuple

TOLERANCE: Final = 1.07
"""A new ceiling lies so much above what was counted; of a count up to `EXACT` it is the count itself."""
EXACT: Final = 20
HONEST: Final = 0.7
"""A count below this part of its ceiling wants the ceiling lowered."""
COUNTED_ON: Final = (3, 11)
"""The ceilings of instructions are those of this Python…"""
ELSEWHERE: Final = 1.4
"""…and on others they are looser by this factor, in both directions."""
VARYING: Final = 3.0
UNKNOWN: Final = "?"
OPENING: Final = "CEILINGS: Final[Mapping[str, Ceiling]] = {"

_RIGHT: Final = {False: (0.9, 0.96), True: (0.15, 0.8)}
"""By whether they vary: counts that are such a part of their ceiling leave it as it is."""
_LINE: Final = 120
_ROUNDING: Final = 1e-9


class Ceiling(NamedTuple):
    """What a count may be."""

    at_most: float
    why: str
    varies: bool = False
    """Whether the count depends on how fast things go: then a new ceiling is `VARYING` times what was counted, which
    still shows what is done for each job anew, and nothing may be too little."""


def complaints(group: str, counts: Mapping[str, float], ceilings: Mapping[str, Ceiling]) -> list[str]:
    """What is wrong with the counts of a group, whose names begin with its own: one sentence each."""
    expected = {name for name in ceilings if _group(name) == group}
    found = [f"{name} is not counted any more: take it out of the table" for name in sorted(expected - set(counts))]
    for name, count in counts.items():
        if name not in ceilings:
            found.append(f"{name} is not in the table; it is {count:.6g}")
            continue
        at_most, why, varies = ceilings[name]
        loosened = ELSEWHERE if "instructions" in name and sys.version_info[:2] != COUNTED_ON else 1.0
        if count > at_most * loosened + _ROUNDING:
            found.append(f"{name}: {count:.6g}, at most {at_most * loosened:.6g} allowed ({why})")
        elif not varies and count < at_most * HONEST / loosened - _ROUNDING:
            found.append(f"{name}: only {count:.6g}, tighten the ceiling of {at_most:.6g}")
    return found


def renewed(counts: Mapping[str, float], ceilings: Mapping[str, Ceiling]) -> dict[str, Ceiling]:
    """The ceilings for these counts, with the reasons that are there, otherwise with `UNKNOWN`. What is still right
    stays as it is, and so do groups of which nothing was counted."""
    counted = {_group(name) for name in counts}
    new = {name: _renewed(count, ceilings.get(name)) for name, count in counts.items()}
    kept = {name: ceiling for name, ceiling in ceilings.items() if _group(name) not in counted}
    places = {group: place for place, group in enumerate(dict.fromkeys(map(_group, [*ceilings, *counts])))}
    return dict(sorted((kept | new).items(), key=lambda item: places[_group(item[0])]))


def written(ceilings: Mapping[str, Ceiling]) -> str:
    """The table as it stands in `ceilings`."""
    lines = [OPENING]
    for name, (at_most, why, varies) in ceilings.items():
        arguments = f'{at_most:g}, "{why}"' + ", varies=True" * varies
        line = f'    "{name}": Ceiling({arguments}),'
        lines += [line] if len(line) <= _LINE else [f'    "{name}": Ceiling(', f"        {arguments}", "    ),"]
    return "\n".join([*lines, "}", ""])


def ceiling_for(count: float, varies: bool = False) -> float:
    """A ceiling for something that was counted: itself where it is a small whole number, else a little more, in three
    digits."""
    if not varies and count <= EXACT and abs(count - round(count)) < _ROUNDING:
        return round(count)
    at_most = count * (VARYING if varies else TOLERANCE)
    step = 10.0 ** (math.floor(math.log10(at_most)) - 2)
    return round(math.ceil(at_most / step - _ROUNDING) * step, 6)


def _renewed(count: float, ceiling: Ceiling | None) -> Ceiling:
    if ceiling is None:
        return Ceiling(ceiling_for(count), UNKNOWN)
    if ceiling.at_most and _RIGHT[ceiling.varies][0] <= count / ceiling.at_most <= _RIGHT[ceiling.varies][1]:
        return ceiling
    return ceiling._replace(at_most=ceiling_for(count, ceiling.varies))


def _group(name: str) -> str:
    return name.partition(" ")[0]
