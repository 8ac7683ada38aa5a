"""An application whose runs are wrapped by middleware of every form, and whose jobs an older release dispatched too."""

import asyncio
from collections.abc import Generator
from datetime import timedelta

from runwick import Cancelled, Failed, Job, JobContext, Next, NextAsync, Result, Retry, Runwick, Succeeded

rw = Runwick("wrapped", store="sqlite:///never-opened.db")


def answer(text: str) -> Result | None:
    """What the text asks for; None asks for the rest."""
    answers: dict[str, Result] = {
        "skip": Succeeded("skipped"),
        "retry": Retry("bank_closed", timedelta(seconds=90)),
        "fail": Failed("no_such_card", "Card 7 is void."),
        "cancel": Cancelled("withdrawn"),
    }
    return answers.get(text)


@rw.middleware(alias="generator")
def yielding(ctx: JobContext) -> Generator[None, Result, Result]:
    ctx.items["way"] = "generator"
    if (given := answer(ctx.payload.text)) is not None:
        return given
    return (yield)


@rw.middleware(alias="plain")
def calling(ctx: JobContext, proceed: Next) -> Result:
    ctx.items["way"] = "plain"
    given = answer(ctx.payload.text)
    return proceed() if given is None else given


@rw.middleware(alias="async")
async def awaiting(ctx: JobContext, proceed: NextAsync) -> Result:
    await asyncio.sleep(0)
    ctx.items["way"] = "async"
    given = answer(ctx.payload.text)
    return await proceed() if given is None else given


@rw.job("wrapped.generator", middleware=("generator",), version=2)
class Generating(Job):
    text: str


@rw.job("wrapped.plain", middleware=("plain",))
class Calling(Job):
    text: str


@rw.job("wrapped.async", middleware=("async",))
class Awaiting(Job):
    text: str


class GeneratingV1(Job):
    words: list[str]


@rw.upgrade(Generating, from_version=1)
def joined(old: GeneratingV1) -> Generating:
    return Generating(" ".join(old.words))


def told(text: str, ctx: JobContext) -> str:
    return f"{text} by {ctx.items['way']}, version {ctx.original_payload_version} of {ctx.current_payload_version}"


@rw.handler
def generate(job: Generating, ctx: JobContext) -> str:
    return told(job.text, ctx)


@rw.handler
def call(job: Calling, ctx: JobContext) -> str:
    return told(job.text, ctx)


@rw.handler
def wait(job: Awaiting, ctx: JobContext) -> str:
    return told(job.text, ctx)
