"""What the zygotes of one supervisor have in common. There is one, and a second one while it is reloaded.

fence       until when each executor may live
spared      children of the supervisor that a sweep must not touch
turn        one birth at a time, and no sweep kills meanwhile: an executor arrives before it is announced
guarded     the living executors; every zygote knows them all, so that whichever lives kills them with the parent
run_lock    the lock on the run file, which every process of the worker holds
"""

import asyncio
from typing import TYPE_CHECKING

from runwick_supervisor import processes
from runwick_supervisor.fence import FenceMemory
from runwick_supervisor.sweep import bury_dead, sweep

if TYPE_CHECKING:
    from runwick_supervisor.zygote_handle import Zygote


class Family:
    """Made before the first zygote; its fence is closed when the last one has been stopped.

    Args:
        run_lock: the descriptor of the worker's run file, where it has one.
        buries_strangers: take the statuses of all dead children that are not spared. Only for a process that waits for
            no others.
    """

    def __init__(self, run_lock: int | None = None, *, buries_strangers: bool = False) -> None:
        processes.adopt_orphans()
        self.fence = FenceMemory.create()
        self.run_lock = run_lock
        self.spared: set[int] = set()
        self.turn = asyncio.Lock()
        self.guarded: dict[int, tuple[int, int]] = {}
        """Pid to number and pidfd."""
        self._buries_strangers = buries_strangers
        self._zygotes: list[Zygote] = []

    @property
    def numbers(self) -> set[int]:
        """Of all living executors."""
        return {number for number, _ in self.guarded.values()}

    def join(self, zygote: "Zygote") -> None:
        """One more."""
        self._zygotes.append(zygote)

    def others(self, zygote: "Zygote") -> "list[Zygote]":
        """All but this one."""
        return [one for one in self._zygotes if one is not zygote]

    def born(self, of: "Zygote", pid: int, executor: int, pidfd: int) -> None:
        """It lives; every zygote shall guard it."""
        self.guarded[pid] = executor, pidfd
        self.spared.add(pid)
        for zygote in self.others(of):
            zygote.guard(pid)

    def forget(self, pid: int) -> None:
        """This executor is dead and its group is killed; to be said before its pidfd is closed."""
        self.guarded.pop(pid, None)
        self.spared.discard(pid)
        for zygote in self._zygotes:
            zygote.let_go(pid)

    async def sweep(self) -> None:
        """Kill what dead executors left behind; returns when nothing of it is left."""
        await sweep(self.spared, self.turn)

    def bury_strangers(self) -> None:
        """Now and then: what lost its parent, arrived here and is dead must not keep its number. As process 1 of a
        namespace the supervisor is sent all of that, its executors' or not."""
        # During a birth an executor may be here that is not named yet.
        if self._buries_strangers and not self.turn.locked():
            bury_dead(self.spared)

    async def stop(self) -> None:
        """End every zygote."""
        for zygote in list(self._zygotes):
            await zygote.stop()

    def leave(self, zygote: "Zygote") -> None:
        """It has been stopped."""
        self._zygotes.remove(zygote)
        if not self._zygotes:
            self.fence.close()
