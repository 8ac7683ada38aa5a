"""An application part whose annotations are all text, some of them ahead of what they name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runwick import Job, JobContext, Runwick

if TYPE_CHECKING:
    from decimal import Decimal

rw = Runwick("annotated", store="memory://")


@rw.handler
def shrink(job: Shrink, ctx: JobContext, images: Images) -> dict[str, int]:
    return {"width": job.width}


@rw.provider
def images() -> Images:
    return Images()


@rw.task("images.rename")
def rename(to: Name, times: int = 1) -> None: ...


class Images:
    pass


class Name(Job):
    text: str


@rw.job("images.shrink")
class Shrink(Job):
    width: int


def declare_locally(rw: Runwick) -> type[Job]:
    """Declares everything inside a function, where only this function knows the names."""

    class Pages: ...

    @rw.job("pages.print")
    class Print(Job):
        number: int

    @rw.provider
    def pages() -> Pages:
        return Pages()

    @rw.handler
    def print_page(job: Print, pages: Pages) -> None: ...

    return Print


def declare_with_unknown_names(rw: Runwick) -> None:
    """Every annotation here names something that is not there at run time."""

    @rw.handler
    def pay(job: Payment) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    @rw.handler
    def charge(job: Shrink, amount: Decimal) -> None: ...

    @rw.provider
    def purse() -> Decimal:
        raise NotImplementedError

    @rw.task("payments.round")
    def round_up(amount: Decimal) -> None: ...
