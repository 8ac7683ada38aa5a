"""Finds the application that a command works on, ``module`` or ``module:attribute``, and other objects by their place.

The given directory comes first on the import path, as it does for a script that stands in it. Importing runs the
application's own code, so whatever that raises becomes one problem that names the place.
"""

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Final

from runwick.app.runwick import Runwick
from runwick.contracts.errors import ConfigurationError, Problem
from runwick.declarations.suggestions import did_you_mean, quoted

_RUNWICK: Final = f"{Path(__file__).parents[1]}/"
"""In front of the path of every file of Runwick itself."""


def locate(target: str, app_dir: Path) -> Runwick:
    """Import the application.

    Args:
        target: ``thumbs.jobs``, which must hold exactly one `Runwick`, or ``thumbs.jobs:rw``.
        app_dir: comes first on the import path.

    Raises:
        ConfigurationError: there is no such module or object (code ``invalid_application``), or importing it failed
            (``import_failed``).
    """
    name, colon, attribute = target.partition(":")
    if not _is_module(name) or (colon and not attribute):
        raise _refusal(
            target, "is not a module; write module or module:attribute, such as thumbs.jobs or thumbs.jobs:rw."
        )
    module = _imported(name, app_dir)
    return _application(module, attribute) if attribute else _only_one(module)


def locate_object(target: str, app_dir: Path) -> object:
    """Import whatever ``module:attribute`` names.

    Raises:
        ConfigurationError: as `locate`.
    """
    name, _, attribute = target.partition(":")
    if not _is_module(name) or not attribute:
        raise _refusal(target, "names nothing; write module:attribute, such as thumbs.ops:grants.")
    module = _imported(name, app_dir)
    return _attribute(module, attribute, [known for known in vars(module) if not known.startswith("_")])


def _is_module(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))


def _imported(name: str, app_dir: Path) -> ModuleType:
    directory = str(app_dir.resolve())
    if sys.path[:1] != [directory]:
        sys.path.insert(0, directory)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            sentence = f"no module {quoted(error.name)} in {directory} or among the installed packages"
            raise _refusal(name, f"{sentence}; mend the name, or name its directory with --app-dir.") from None
        raise _failure(name, error) from error
    except (Exception, SystemExit) as error:
        raise _failure(name, error) from error


def _application(module: ModuleType, attribute: str) -> Runwick:
    found = _attribute(module, attribute, _applications(module))
    if not isinstance(found, Runwick):
        target = f"{module.__name__}:{attribute}"
        raise _refusal(target, f"{target} is a {type(found).__name__}, not a Runwick object.")
    return found


def _attribute(module: ModuleType, attribute: str, known: Iterable[str]) -> object:
    target = f"{module.__name__}:{attribute}"
    found: object = module
    for step in attribute.split("."):
        try:
            found = getattr(found, step)
        except AttributeError:
            near = did_you_mean(attribute, known)
            raise _refusal(target, f"{module.__name__} has no attribute {quoted(attribute)}. {near}".rstrip()) from None
    return found


def _only_one(module: ModuleType) -> Runwick:
    applications = _applications(module)
    different = {id(application): application for application in applications.values()}
    if len(different) == 1:
        return next(iter(different.values()))
    if not different:
        sentence = f'{module.__name__} holds no Runwick object; create one there, rw = Runwick("…").'
        raise _refusal(module.__name__, sentence)
    listed = " or ".join(f"{module.__name__}:{name}" for name in applications)
    raise _refusal(module.__name__, f"{module.__name__} holds {len(different)} Runwick objects; say which: {listed}.")


def _applications(module: ModuleType) -> dict[str, Runwick]:
    return {name: value for name, value in vars(module).items() if isinstance(value, Runwick)}


def _failure(name: str, error: BaseException) -> ConfigurationError:
    """Importing ran into an error; the last frame outside the import system and Runwick is where to look."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    places = [
        f"{frame.filename}:{frame.lineno}"
        for frame in frames
        if frame.filename != importlib.__file__ and not frame.filename.startswith(_RUNWICK)
    ]
    if isinstance(error, SyntaxError) and error.filename:
        places.append(f"{error.filename}:{error.lineno}")
    where = f" ({places[-1]})" if places else ""
    text = traceback.format_exception_only(error)[-1].strip()
    return ConfigurationError([Problem("import_failed", name, f"importing {name} raised {text}{where}.")])


def _refusal(target: str, sentence: str) -> ConfigurationError:
    return ConfigurationError([Problem("invalid_application", target, sentence)])
