"""The main job on real input: every module of the running Python's standard library, examined on every core.

`jobs.py` is the application, `examine.py` its work, `demo.py` the run that ``make demo`` starts, `report.py` what that
run shows at its end.
"""
