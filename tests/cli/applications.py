"""Small applications for the command's tests."""

SOUND = """
from runwick import Job, JobContext, Runwick

rw = Runwick("thumbs", store="sqlite:///thumbs.db")
rw.queue("bulk")


@rw.job("image.thumbnail", queue="images", priority="high", max_executions=5)
class MakeThumbnail(Job):
    path: str


@rw.job("image.report", version=2, max_executions=1)
class Report(Job):
    pass


@rw.handler
def make_thumbnail(job: MakeThumbnail, context: JobContext) -> dict[str, int]:
    return {"bytes": 18_204}
"""

BROKEN = """
from datetime import timedelta

from runwick import Job, Runwick, WorkerOptions

rw = Runwick("thumbs", store="sqlite:///thumbs.db", worker=WorkerOptions(lease_duration=timedelta(seconds=30)))
rw.pool("main", queues=("imgaes",))


@rw.job("image.thumbnail", queue="images", max_executions=0)
class MakeThumbnail(Job):
    path: str
"""
