"""The work of the stdlib example: figures of one module from its source."""

import pytest

from examples.stdlib.examine import examine

SMALL = b'''\
"""A module."""


class Shelf:
    def __init__(self, books):
        self.books = books  # kept as given


def first(shelf, wanted):
    for book in shelf.books:
        if book == wanted and book:
            return book
        elif book is None:
            continue
        else:
            pass
    return None
'''


def test_counts_what_a_module_holds() -> None:
    assert examine(SMALL) == {
        "parsed": True,
        "lines": 17,
        "comments": 1,
        "functions": 2,
        "classes": 1,
        "names": 8,  # Shelf, __init__, self, books, first, shelf, wanted, book
        "branches": 4,  # for, if, and, elif
        "nesting": 3,  # def, for, if; the elif stands beside its if
        "longest": {"name": "first", "lines": 9},
        "most_complex": {"name": "first", "complexity": 5},
    }


def test_a_module_without_functions_has_no_longest_one() -> None:
    measures = examine(b"answer = 42 if True else 0\n")
    assert (measures["longest"], measures["most_complex"]) == (None, None)
    assert measures["branches"] == 1


def test_inner_functions_are_measured_on_their_own() -> None:
    source = b"def outer(a):\n    def inner(b):\n        return [x for x in b if x if x > 1]\n    return inner\n"
    measures = examine(source)
    assert measures["most_complex"] == {"name": "inner", "complexity": 4}
    assert measures["longest"] == {"name": "outer", "lines": 4}


def test_an_if_inside_else_nests_and_an_elif_does_not() -> None:
    nested = examine(b"if a:\n    pass\nelse:\n    if b:\n        pass\n")
    chained = examine(b"if a:\n    pass\nelif b:\n    pass\n")
    assert (nested["nesting"], chained["nesting"]) == (2, 1)


@pytest.mark.parametrize(
    "source",
    [b"print 'no longer Python'\n", b"x = '\0'\n", b"# coding: no-such-coding\n", b"(" * 300 + b")" * 300],
    ids=["syntax", "nul", "coding", "depth"],
)
def test_a_source_that_does_not_parse_is_an_ordinary_result(source: bytes) -> None:
    assert examine(source) == {"parsed": False, "lines": 1}


def test_old_escapes_in_a_source_warn_nobody() -> None:
    assert examine(b"pattern = '\\d'\n")["parsed"]  # pytest turns a warning into an error


def test_deeply_nested_code_is_walked() -> None:
    assert examine(b"x = " + b"+".join([b"1"] * 500) + b"\n")["parsed"]
