"""Which variables numeric libraries are told their number of threads by."""

from runwick.config.numeric import INHERIT, thread_variables


def test_every_library_is_told_unless_somebody_has() -> None:
    told = thread_variables(1, {"PATH": "/bin"})
    assert {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"} < set(told)
    assert set(told.values()) == {"1"}
    assert thread_variables(2, {"MKL_NUM_THREADS": "8"}) == {name: "2" for name in told if name != "MKL_NUM_THREADS"}, (
        "one that is set keeps its value"
    )


def test_libraries_that_go_by_openmp_are_not_told_otherwise() -> None:
    told = thread_variables(1, {"OMP_NUM_THREADS": "4"})
    assert set(told) == {"NUMBA_NUM_THREADS", "RAYON_NUM_THREADS", "POLARS_MAX_THREADS"}


def test_nothing_is_told_where_everybody_is_left_alone() -> None:
    assert thread_variables(INHERIT, {}) == {}
