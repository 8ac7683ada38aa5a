"""The compiled part: that it is built or honestly missing, and that it counts what is allocated."""

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from runwick import ExecutorOptions
from runwick_supervisor import native
from tests.supervisor.applications.deeds import Allocate, Chat, Fork, Nothing
from tests.supervisor.crew import ROOT, until
from tests.supervisor.single import single

SOURCE = native.LIBRARY.with_suffix(".c")
MB = 1_000_000


def build(folder: Path, compiler: str | None) -> tuple[bool, str]:
    """Run the build hook on a copy, in place of a library that was built before; whether there is one, and what it
    said."""
    copy = folder / "supervisor" / "runwick_supervisor" / "native"
    copy.mkdir(parents=True)
    shutil.copy(SOURCE, copy)
    (copy / native.LIBRARY.name).write_text("built before")
    code = f"""
import sys, types
sys.path.insert(0, {str(ROOT / "supervisor")!r})
interface = types.ModuleType("interface")
class BuildHookInterface:
    root = {str(folder)!r}
    app = types.SimpleNamespace(display_warning=print)
    def __class_getitem__(cls, item): return cls
interface.BuildHookInterface = BuildHookInterface
for name in ("hatchling", "hatchling.builders", "hatchling.builders.hooks", "hatchling.builders.hooks.plugin"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["hatchling.builders.hooks.plugin.interface"] = interface
from build_native import NativeBuild
data = {{"artifacts": []}}
NativeBuild().initialize("standard", data)
print(data)
"""
    environment = {name: value for name, value in os.environ.items() if name != "CC"}
    if compiler is not None:
        environment["CC"] = compiler
    told = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    library = copy / native.LIBRARY.name
    assert {each.suffix for each in copy.iterdir()} <= {".c", ".so"}, "nothing unfinished is left"
    return library.exists() and library.read_bytes()[:4] == b"\x7fELF", told.stdout


def test_it_is_built_for_one_platform_and_every_python(tmp_path: Path) -> None:
    built, told = build(tmp_path, None)
    assert built
    assert "runwick_native.so" in told
    assert "'py3-none-linux" in told
    library, refused = native.load(tmp_path / "supervisor" / "runwick_supervisor" / "native" / native.LIBRARY.name)
    assert library is not None, refused


@pytest.mark.parametrize(
    ("compiler", "complaint"), [("false", "false refused it"), ("/no/compiler", "could not be run")]
)
def test_where_it_cannot_be_built_none_is_there_and_the_build_goes_on(
    tmp_path: Path, compiler: str, complaint: str
) -> None:
    built, told = build(tmp_path, compiler)
    assert not built
    assert complaint in told
    assert "{'artifacts': []}" in told


def test_a_library_that_is_missing_or_none_is_refused_with_the_reason(tmp_path: Path) -> None:
    library, refused = native.load(tmp_path / "none.so")
    assert (library, "C compiler" in str(refused)) == (None, True)
    junk = tmp_path / "junk.so"
    junk.write_bytes(b"\x7fELF, or not")
    library, refused = native.load(junk)
    assert library is None
    assert "cannot be used here" in str(refused)


def test_what_a_handler_allocates_is_counted_though_it_is_freed_again() -> None:
    async def scene() -> None:
        async with single() as its:
            quiet = (await its.run(Nothing())).usage
            busy = (await its.run(Allocate(50))).usage
            assert quiet is not None
            assert busy is not None
            assert quiet.allocations_by == busy.allocations_by == "counted"
            assert quiet.allocated_bytes is not None
            assert quiet.allocated_bytes < MB
            assert busy.allocated_bytes is not None
            assert 50 * MB <= busy.allocated_bytes - quiet.allocated_bytes < 50.5 * MB
            assert busy.allocated_blocks is not None
            assert 50 <= busy.allocated_blocks < 5_000

    asyncio.run(scene())


def test_what_a_killed_attempt_had_allocated_is_left_behind(tmp_path: Path) -> None:
    async def scene() -> None:
        async with single() as its:
            its.put(Chat(2_000, str(tmp_path / "started"), str(tmp_path / "never")))
            await until((tmp_path / "started").exists, "the run")
            await its.kill()
            progress = its.end.remains().progress
            assert progress.before is not None
            assert progress.before.alloc_bytes > 0
            assert progress.allocated is not None
            assert progress.allocated.blocks > 2_000

    asyncio.run(scene())


def test_what_a_fork_allocates_is_its_own_affair(tmp_path: Path) -> None:
    async def scene() -> None:
        async with single() as its:
            assert (await its.run(Fork())).error is None
            usage = (await its.run(Nothing())).usage
            assert usage is not None
            assert usage.allocations_by == "counted"

    asyncio.run(scene())


@pytest.mark.parametrize("options", [ExecutorOptions(compiled_part=False), ExecutorOptions(record_allocations=False)])
def test_nothing_is_counted_where_that_is_not_wanted(options: ExecutorOptions) -> None:
    async def scene() -> None:
        async with single(options) as its:
            usage = (await its.run(Allocate(1))).usage
            assert usage is not None
            assert usage.cpu_us is not None
            assert (usage.allocated_bytes, usage.allocated_blocks, usage.allocations_by) == (None, None, None)

    asyncio.run(scene())
