"""Write the diagram of a job's states into ARCHITECTURE.md, from the one table of legal moves."""

from pathlib import Path

from runwick.contracts.states import LEGAL_MOVES, TERMINAL_STATES, JobState

ARCHITECTURE = Path(__file__).parent.parent / "ARCHITECTURE.md"
OPENING, CLOSING = "<!-- states -->", "<!-- /states -->"


def diagram() -> str:
    """The legal moves as a Mermaid state diagram."""
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> pending: dispatch"]
    lines += [
        f"    {state.value} --> {target.value}"
        for state in JobState
        for target in JobState
        if target in LEGAL_MOVES[state]
    ]
    lines += [f"    {state.value} --> [*]" for state in JobState if state in TERMINAL_STATES]
    return "\n".join([*lines, "```"])


def with_diagram(page: str) -> str:
    """The page with its diagram replaced."""
    head, _, rest = page.partition(OPENING)
    _, _, tail = rest.partition(CLOSING)
    return f"{head}{OPENING}\n{diagram()}\n{CLOSING}{tail}"


if __name__ == "__main__":
    ARCHITECTURE.write_text(with_diagram(ARCHITECTURE.read_text()))
