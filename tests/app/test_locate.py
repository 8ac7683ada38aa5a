import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runwick import ConfigurationError, Problem
from runwick.app.locate import locate

TWO = """
from runwick import Runwick
ours = Runwick("ours", store="memory://")
also_ours = ours
theirs = Runwick("theirs", store="memory://")
class Holder:
    inner = Runwick("inner", store="memory://")
number = 5
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory for modules, and an interpreter that forgets them again."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        del sys.modules[name]


def write(folder: Path, name: str, text: str) -> None:
    path = folder / f"{name.replace('.', '/')}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def problem(target: str, folder: Path) -> Problem:
    with pytest.raises(ConfigurationError) as caught:
        locate(target, folder)
    [found] = caught.value.problems
    return found


def test_a_module_with_one_application(folder: Path) -> None:
    write(folder, "thumbs_a.jobs", 'from runwick import Runwick\nrw = again = Runwick("thumbs", store="memory://")')
    assert locate("thumbs_a.jobs", folder).application == "thumbs"
    assert sys.path[0] == str(folder)


def test_an_attribute_says_which(folder: Path) -> None:
    write(folder, "two_b", TWO)
    assert locate("two_b:theirs", folder).application == "theirs"
    assert locate("two_b:Holder.inner", folder).application == "inner"


def test_the_directory_comes_first(folder: Path) -> None:
    write(folder, "first_c/app_c", 'from runwick import Runwick\nrw = Runwick("first", store="memory://")')
    write(folder, "second_c/app_c", 'from runwick import Runwick\nrw = Runwick("second", store="memory://")')
    sys.path.insert(0, str(folder / "first_c"))
    assert locate("app_c", folder / "second_c").application == "second"


def test_the_path_grows_only_once(folder: Path) -> None:
    write(folder, "app_d", 'from runwick import Runwick\nrw = Runwick("d", store="memory://")')
    locate("app_d", folder)
    length = len(sys.path)
    locate("app_d", folder)
    assert len(sys.path) == length


@pytest.mark.parametrize("target", ["", "two words", "a..b", "jobs.py:", ":rw", "jobs/app", "3d"])
def test_what_names_no_module(folder: Path, target: str) -> None:
    found = problem(target, folder)
    assert found.code == "invalid_application"
    assert "write module or module:attribute" in found.message


def test_a_module_that_is_not_there(folder: Path) -> None:
    found = problem("nowhere_e.jobs", folder)
    assert (found.code, found.setting) == ("invalid_application", "nowhere_e.jobs")
    assert found.message == (
        f'no module "nowhere_e" in {folder} or among the installed packages; mend the name, or name its directory '
        "with --app-dir."
    )


def test_a_submodule_that_is_not_there(folder: Path) -> None:
    write(folder, "pack_f.__init__", "")
    assert 'no module "pack_f.jobs"' in problem("pack_f.jobs", folder).message


def test_a_module_that_imports_what_is_not_there(folder: Path) -> None:
    write(folder, "app_g", "import nowhere_g")
    found = problem("app_g", folder)
    assert found.code == "import_failed"
    assert found.message == (
        f"importing app_g raised ModuleNotFoundError: No module named 'nowhere_g' ({folder}/app_g.py:1)."
    )


@pytest.mark.parametrize(
    ("text", "raised"),
    [
        ("\nraise ValueError('no key')", "ValueError: no key"),
        ("\nraise SystemExit('bye')", "SystemExit: bye"),
        ("\nrw = = 5", "SyntaxError: invalid syntax"),
    ],
)
def test_an_import_that_fails_is_told_with_its_place(folder: Path, text: str, raised: str) -> None:
    write(folder, "app_h", text)
    found = problem("app_h", folder)
    assert (found.code, found.setting) == ("import_failed", "app_h")
    assert found.message == f"importing app_h raised {raised} ({folder}/app_h.py:2)."


def test_a_wrong_declaration_is_told_with_the_applications_own_place(folder: Path) -> None:
    text = 'from runwick import Job, Runwick\nrw = Runwick("p", store="memory://")\n@rw.job\nclass A(Job): ...\n'
    write(folder, "app_p", text)
    assert problem("app_p", folder).message.endswith(f'write @rw.job("image.thumbnail") ({folder}/app_p.py:3).')


def test_a_module_without_an_application(folder: Path) -> None:
    write(folder, "app_i", "number = 5")
    assert problem("app_i", folder) == Problem(
        "invalid_application", "app_i", 'app_i holds no Runwick object; create one there, rw = Runwick("…").'
    )


def test_a_module_with_two_applications(folder: Path) -> None:
    write(folder, "app_j", TWO)
    found = problem("app_j", folder)
    assert found.code == "invalid_application"
    assert found.message == ("app_j holds 2 Runwick objects; say which: app_j:ours or app_j:also_ours or app_j:theirs.")


@pytest.mark.parametrize(
    ("attribute", "sentence"),
    [
        ("thers", 'app_k has no attribute "thers". Did you mean "theirs"?'),
        ("number", "app_k:number is a int, not a Runwick object."),
        ("Holder.outer", 'app_k has no attribute "Holder.outer". Known: "also_ours", "ours", "theirs".'),
    ],
)
def test_an_attribute_that_is_no_application(folder: Path, attribute: str, sentence: str) -> None:
    write(folder, "app_k", TWO)
    found = problem(f"app_k:{attribute}", folder)
    assert found.code == "invalid_application"
    assert found.message == sentence
