"""Tables for people, without the colours that a terminal may show."""

from collections.abc import Sequence

import click

from runwick.cli.tables import lay_out_table


def plain(header: Sequence[str], rows: Sequence[Sequence[str | None]]) -> str:
    return click.unstyle(lay_out_table(header, rows))


def test_a_table_is_aligned_and_leaves_out_what_nobody_knows() -> None:
    rows = [["1", "crashed", None, "1.8 s", None], ["12", "ok", None, None, None]]
    assert plain(["#", "outcome", "why", "wall", "cpu"], rows) == (
        "  #   outcome  wall\n"
        "  1   crashed  1.8 s\n"
        "  12  ok       –"
    )  # fmt: skip


def test_a_cell_cannot_steer_the_terminal() -> None:
    assert plain(["why"], [["\x1b[2Jµs"]]) == "  why\n  \\x1b[2J\\xb5s"
