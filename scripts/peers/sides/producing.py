"""The command line by which every side dispatches: ``python -m scripts.peers.sides.NAME produce KIND COUNT ARGUMENT``.

It prints one JSON object: jobs, and the seconds from before the first call until after the last one, connecting not
included. ``--bulk N`` dispatches N at once, ``--pause-ms LOW HIGH`` waits a random while before each call, and
``--gated`` prints "ready" once it is connected and waits for a line, so that several begin together.

Standard library alone: this module is imported in the environments of the other systems.
"""

import argparse
import asyncio
import functools
import inspect
import json
import random
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, NamedTuple

from scripts.peers.sides import work


class Producer(NamedTuple):
    """How a system dispatches: plain functions, or coroutine functions."""

    one: Callable[[str, Any], Awaitable[object] | object]
    """Takes the kind and the value of one job."""
    many: Callable[[str, list[Any]], Awaitable[object] | object] | None
    """Takes the kind and the values of several; None where the system has no such call."""


Opened = AbstractContextManager[Producer] | AbstractAsyncContextManager[Producer]
"""Connects, on an event loop if it is asynchronous."""


def main(opened: Callable[[], Opened]) -> None:
    """Do what the command line asks for, connected by `opened`."""
    asked = _asked()
    entering = opened()
    if isinstance(entering, AbstractContextManager):
        with entering as producer:
            seconds = _timed(asked, producer)
    else:
        seconds = asyncio.run(_timed_on_a_loop(asked, entering))
    print(json.dumps({"jobs": asked.count, "seconds": seconds}), flush=True)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=["produce"])
    parser.add_argument("kind", choices=work.KINDS)
    parser.add_argument("count", type=int)
    parser.add_argument("argument", type=float)
    parser.add_argument("--bulk", type=int, default=1)
    parser.add_argument("--pause-ms", type=float, nargs=2, default=(0, 0))
    parser.add_argument("--gated", action="store_true")
    return parser.parse_args()


def _timed(asked: argparse.Namespace, producer: Producer) -> float:
    started_s = _begun(asked)
    for call, pause_s in _calls(asked, producer):
        if pause_s:
            time.sleep(pause_s)
        call()
    return time.monotonic() - started_s


async def _timed_on_a_loop(asked: argparse.Namespace, entering: AbstractAsyncContextManager[Producer]) -> float:
    async with entering as producer:
        started_s = _begun(asked)
        for call, pause_s in _calls(asked, producer):
            if pause_s:
                await asyncio.sleep(pause_s)
            sent = call()
            if inspect.isawaitable(sent):
                await sent
        return time.monotonic() - started_s


def _begun(asked: argparse.Namespace) -> float:
    """When dispatching begins: now, or as soon as that is said."""
    if asked.gated:
        print("ready", flush=True)
        sys.stdin.readline()
    return time.monotonic()


def _calls(asked: argparse.Namespace, producer: Producer) -> Iterator[tuple[Callable[[], object], float]]:
    """Every call that dispatches, and how many seconds to wait before it."""
    kind, many = asked.kind, producer.many if asked.bulk > 1 else None
    for first in range(0, asked.count, asked.bulk if many else 1):
        if many:
            numbers = range(first, min(asked.count, first + asked.bulk))
            values = [work.value(kind, number, asked.argument) for number in numbers]
            yield functools.partial(many, kind, values), _pause_s(asked)
        else:
            # The value is made in the call: a stamp is taken when the wait is over.
            yield functools.partial(_one, producer, asked, first), _pause_s(asked)


def _one(producer: Producer, asked: argparse.Namespace, number: int) -> object:
    return producer.one(asked.kind, work.value(asked.kind, number, asked.argument))


def _pause_s(asked: argparse.Namespace) -> float:
    return random.uniform(*asked.pause_ms) / 1_000
