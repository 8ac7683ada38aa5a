"""Counts everything and says what the table of ceilings should be: ``python -m tests.hot_paths [--write] [GROUP …]``.

With ``--write`` it stands in `ceilings` then. Reasons are kept, and so are the lines of groups that are not named.
"""

import sys
import tempfile
from pathlib import Path

from tests.hot_paths import ceilings
from tests.hot_paths.groups import GROUPS
from tests.hot_paths.guard import OPENING, renewed, written


def main() -> None:
    named = [argument for argument in sys.argv[1:] if argument != "--write"]
    counts: dict[str, float] = {}
    for group in named or GROUPS:
        with tempfile.TemporaryDirectory() as folder:
            counts |= GROUPS[group](Path(folder))
    for name, count in counts.items():
        print(f"{count:12.6g}  {name}", file=sys.stderr)
    table = written(renewed(counts, ceilings.CEILINGS))
    if "--write" in sys.argv:
        source = Path(ceilings.__file__)
        source.write_text(source.read_text().partition(OPENING)[0] + table)
    else:
        print(table, end="")


if __name__ == "__main__":
    main()
