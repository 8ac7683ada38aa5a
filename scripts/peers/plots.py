"""Bar charts as SVG, drawn here: a picture in the documentation needs no library, and is read in light and in dark."""

import math
from collections.abc import Sequence
from html import escape
from typing import Final, NamedTuple

WIDTH: Final = 760
_LABEL: Final = 190
_VALUE: Final = 150
_BAR: Final = 13
_GAP: Final = 9
_TOP: Final = 46
_STYLE: Final = """
  text { font: 12px system-ui, sans-serif; fill: #444 }
  .title { font-size: 14px; font-weight: 600 }
  .ours { fill: #0b6e99 } .theirs { fill: #9aa5ad }
  @media (prefers-color-scheme: dark) { text { fill: #ccc } .ours { fill: #4db6e2 } .theirs { fill: #6b757c } }
"""


class Bar(NamedTuple):
    """One system's bars, one below the other and each paler than the one before."""

    label: str
    values: Sequence[float]
    text: str
    """What stands behind them."""
    is_ours: bool


def bars(title: str, rows: Sequence[Bar], *, logarithmic: bool = False) -> str:
    """The drawing, as the text of an SVG file."""
    largest = max((value for row in rows for value in row.values), default=1.0)
    smallest = min((value for row in rows for value in row.values if value > 0), default=largest)
    room = WIDTH - _LABEL - _VALUE

    def length(value: float) -> float:
        if value <= 0 or largest <= 0:
            return 0.0
        if logarithmic:
            low = math.log10(smallest) - 0.3
            return room * (math.log10(value) - low) / (math.log10(largest) - low)
        return room * value / largest

    parts, top = [], _TOP
    for row in rows:
        height = len(row.values) * _BAR
        middle = top + height / 2 + 4
        parts.append(f'<text x="{_LABEL - 8}" y="{middle:.1f}" text-anchor="end">{escape(row.label)}</text>')
        for place, value in enumerate(row.values):
            kind, paler = "ours" if row.is_ours else "theirs", 1 - 0.3 * place
            parts.append(
                f'<rect class="{kind}" opacity="{paler:.1f}" x="{_LABEL}" y="{top + place * _BAR}" '
                f'width="{length(value):.1f}" height="{_BAR - 1}"/>'
            )
        end = _LABEL + max((length(value) for value in row.values), default=0.0)
        parts.append(f'<text x="{end + 6:.1f}" y="{middle:.1f}">{escape(row.text)}</text>')
        top += height + _GAP
    head = f'<text class="title" x="12" y="24">{escape(title)}</text>'
    body = "\n".join([head, *parts])
    size = f'width="{WIDTH}" height="{top + 6}" viewBox="0 0 {WIDTH} {top + 6}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n<style>{_STYLE}</style>\n{body}\n</svg>\n'
