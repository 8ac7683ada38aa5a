"""Measures one Python module from its source. Pure: bytes in, figures out; it imports and executes nothing of it."""

import ast
import dataclasses
import io
import tokenize
import warnings
from collections.abc import Iterator
from typing import Any

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_BLOCKS = (
    *_FUNCTIONS,
    ast.ClassDef,
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.With,
    ast.AsyncWith,
    ast.Try,
    ast.Match,
    ast.TryStar,
)
"""What indents the code inside it."""
_FORKS = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.Assert, ast.match_case)
"""Where control may go two ways."""


@dataclasses.dataclass
class _Function:
    """One function while its body is walked. The module's own body counts as one without a name."""

    name: str
    lines: int = 0
    complexity: int = 1


def examine(source: bytes) -> dict[str, Any]:
    """Measure a module.

    Args:
        source: the file's bytes; a coding line in it is honoured.

    Returns:
        ``{"parsed": False, "lines": …}`` for a source that this Python cannot parse, which is an ordinary result.
        Otherwise also the numbers of ``comments`` (lines that bear one), ``functions``, ``classes``, ``names``
        (distinct identifiers) and ``branches``, the deepest ``nesting`` of blocks, and ``longest`` and
        ``most_complex``: name and figure of the function with the most lines and of the one with the highest
        cyclomatic complexity, None in a module without functions.
    """
    lines = len(source.splitlines())
    tree = _parsed(source)
    if tree is None:
        return {"parsed": False, "lines": lines}
    functions = [_Function("")]
    names: set[str] = set()
    classes = nesting = 0
    # A stack of our own, since generated code can nest deeper than Python's recursion goes.
    waiting: list[tuple[ast.AST, _Function, int]] = [(tree, functions[0], 0)]
    while waiting:
        node, function, depth = waiting.pop()
        function.complexity += _forks(node)
        names.update(_identifiers(node))
        nesting = max(nesting, depth)
        if isinstance(node, _FUNCTIONS):
            function = _Function(node.name, lines=(node.end_lineno or node.lineno) - node.lineno + 1)
            functions.append(function)
        classes += isinstance(node, ast.ClassDef)
        inner = depth + isinstance(node, _BLOCKS)
        for child in ast.iter_child_nodes(node):
            waiting.append((child, function, depth if _is_elif(node, child) else inner))
    named = functions[1:]
    longest = max(named, key=lambda function: function.lines, default=None)
    most_complex = max(named, key=lambda function: function.complexity, default=None)
    return {
        "parsed": True,
        "lines": lines,
        "comments": _comments(source),
        "functions": len(named),
        "classes": classes,
        "names": len(names),
        "branches": sum(function.complexity - 1 for function in functions),
        "nesting": nesting,
        "longest": longest and {"name": longest.name, "lines": longest.lines},
        "most_complex": most_complex and {"name": most_complex.name, "complexity": most_complex.complexity},
    }


def _parsed(source: bytes) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # old escapes and comparisons in the source are not this job's business
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _comments(source: bytes) -> int:
    return sum(token.type == tokenize.COMMENT for token in tokenize.tokenize(io.BytesIO(source).readline))


def _forks(node: ast.AST) -> int:
    """How many more ways through the code this node adds."""
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    if isinstance(node, ast.comprehension):
        return 1 + len(node.ifs)
    return int(isinstance(node, _FORKS))


def _is_elif(node: ast.AST, child: ast.AST) -> bool:
    """Whether `child` is the ``elif`` of `node`: the tree has it as an ``if`` inside ``else``, the source does not."""
    return (
        isinstance(node, ast.If)
        and isinstance(child, ast.If)
        and node.orelse == [child]
        and child.col_offset == node.col_offset
    )


def _identifiers(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
