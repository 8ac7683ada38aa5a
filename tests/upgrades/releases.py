"""Two releases of Runwick side by side: the one under test, and a next one that brings one migration more."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent.parent
NEXT_MIGRATION: Final = "CREATE TABLE {prefix}note (id bigint PRIMARY KEY, text text NOT NULL){strict};\n"
VARIABLE: Final = "RUNWICK_MIGRATION_STORE"


class Release:
    """One release, whose commands run as processes.

    Args:
        root: the folder from which it is imported.
        environment: of its processes.
    """

    def __init__(self, root: Path, environment: dict[str, str]) -> None:
        self.root = root
        self.environment = {
            **environment,
            "PYTHONPATH": os.pathsep.join([str(root), str(root / "supervisor")]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def run(self, *arguments: str) -> str:
        """``runwick …``; answers what it printed.

        Raises:
            AssertionError: it was refused.
        """
        ran = self._ran(arguments)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def refusal(self, *arguments: str) -> str:
        """What a ``runwick …`` that must be refused says."""
        ran = self._ran(arguments)
        assert ran.returncode != 0, ran.stdout
        return ran.stderr

    def _ran(self, arguments: tuple[str, ...]) -> "subprocess.CompletedProcess[str]":
        program = "from runwick.cli.main import main; main(prog_name='runwick')"
        return subprocess.run(
            [sys.executable, "-c", program, *arguments],
            cwd=self.root, env=self.environment, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip


def next_release(folder: Path, environment: dict[str, str]) -> Release:
    """A copy of this release that brings another migration for every store."""
    for name in ("runwick", "supervisor", "tests/kills"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for store, prefix, strict in (("sqlite", "runwick_", " STRICT"), ("postgres", "", "")):
        migrations = folder / "runwick" / "stores" / store / "migrations"
        number = len(list(migrations.glob("*.sql"))) + 1
        text = NEXT_MIGRATION.format(prefix=prefix, strict=strict)
        text = text.replace("bigint", "INTEGER").replace(" text NOT", " TEXT NOT") if store == "sqlite" else text
        (migrations / f"{number:04}_note.sql").write_text(text)
    return Release(folder, environment)
