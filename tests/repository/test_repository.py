"""The repository tests itself."""

import ast
import re
import subprocess
from pathlib import Path

from runwick.contracts.codes import CODES
from scripts.states import ARCHITECTURE, with_diagram

ROOT = Path(__file__).parent.parent.parent
LISTED = ["git", "ls-files", "-co", "--exclude-standard", "*.py"]
PYTHON_FILES = [ROOT / line for line in subprocess.check_output(LISTED, cwd=ROOT, text=True).split()]
SOURCES = [
    path for path in PYTHON_FILES if path.is_file() and path.relative_to(ROOT).parts[0] in ("runwick", "supervisor")
]


def test_the_state_diagram_is_current() -> None:
    page = ARCHITECTURE.read_text()
    assert page == with_diagram(page), "run: python -m scripts.states"


def test_every_module_says_what_it_is_for() -> None:
    silent = [str(path.relative_to(ROOT)) for path in SOURCES if not ast.get_docstring(ast.parse(path.read_text()))]
    assert silent == []


def test_no_module_hides_behind_a_vague_name() -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}
    assert [path for path in SOURCES if path.stem in vague or vague & set(path.parts)] == []


def test_the_supervisor_folder_never_becomes_a_package() -> None:
    assert not (ROOT / "supervisor" / "__init__.py").exists()


def test_sql_lives_in_files() -> None:
    verbs = re.compile(r"\b(SELECT .+ FROM|INSERT INTO|DELETE FROM|UPDATE \w+ SET)\b", re.DOTALL)
    guilty = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and verbs.search(node.value):
                guilty.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert guilty == []


def test_a_statement_numbers_all_of_its_parameters_or_none() -> None:
    # Python 3.12.0 to 3.12.3 take numbered parameters by name alone and the others by place alone.
    mixed = []
    for path in sorted((ROOT / "runwick" / "stores" / "sqlite" / "sql").glob("*.sql")):
        statement = re.sub(r"--.*", "", path.read_text())
        if len({bool(number) for number in re.findall(r"\?(\d*)", statement)}) > 1:
            mixed.append(path.name)
    assert mixed == []


def test_every_code_that_is_raised_is_in_the_table() -> None:
    names = "Error|Argument|Mismatch|NotInstalled|Unavailable|Unknown|NotFound|Rejected|Problem"
    names += "|Closed|Expired|Broken|Exceeded"
    raised = re.compile(rf"(?:{names})\(\s*\"([a-z]+(?:_[a-z]+)+)\"")
    unknown = {
        f"{path.relative_to(ROOT)}: {code}"
        for path in SOURCES
        for code in raised.findall(path.read_text())
        if code not in CODES
    }
    assert unknown == set()


def test_every_code_of_the_table_is_given_somewhere() -> None:
    texts = "".join(path.read_text() for path in SOURCES if path.name != "codes.py")
    functions = "".join(path.read_text() for path in (ROOT / "runwick").rglob("*.lua"))
    assert [code for code in CODES if f'"{code}"' not in texts and f"'{code}'" not in functions] == []


def test_the_makefile_targets_of_the_readme_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    asked = set(re.findall(r"\bmake ([a-z-]+)", (ROOT / "README.md").read_text()))
    assert asked <= targets
