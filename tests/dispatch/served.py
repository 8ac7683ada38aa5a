"""A web application as gunicorn serves it: every POST dispatches a job, and so does the import."""

import json
import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from runwick import Job, ProducerOptions, Runwick

rw = Runwick("shop", producer=ProducerOptions(admission_wait=timedelta(seconds=30)))  # RUNWICK_STORE names the store


@rw.job("reports.build", queue="reports")
class Report(Job):
    title: str


rw.dispatch(Report("import"))  # with --preload in the master, which forks the workers afterwards


def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    receipt = rw.dispatch(Report(environ["PATH_INFO"]))
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps({"job": receipt.job_id, "process": os.getpid()}).encode()]
