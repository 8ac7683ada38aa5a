"""What `python -m scripts.bench` measures: one module per benchmark, each with a function `run`.

Ours and its floor are always measured in turn in the same run, on fresh files that were filled alike, and their
medians compared: a machine that is slow today is slow for both.
"""
