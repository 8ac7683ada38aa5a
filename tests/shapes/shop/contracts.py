"""The jobs, for whoever dispatches or runs them."""

from runwick import Job, job


@job("shop.pack", queue="packing")
class Pack(Job):
    number: int


@job("shop.bill", queue="billing")
class Bill(Job):
    number: int
