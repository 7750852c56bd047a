"""The rewritten tree: for values that nobody else reaches it does what Python does, with the same line numbers."""

import ast
import inspect
import traceback

import numpy as np
import pytest

from asyncsim.guest.accesses import NAMES
from asyncsim.guest.places import Block, runs_of, sliced
from asyncsim.guest.rewrite import loops_of, rewritten


def ran(text):
    space = dict(NAMES)
    exec(compile(rewritten(text, "written.py"), "written.py", "exec"), space)  # noqa: S102 - a text of this file
    return {name: value for name, value in space.items() if not name.startswith("__")}


PROGRAMS = [
    "a = [1, 2, 3]\na[0] = 5\na[1] += 4\na[0:2] = [9]\nb, a[0] = a[-1], 7\nc = [x * 2 for x in a if x]\n",
    "d = {}\nd['k'] = d.get('k', 0) + 1\nd['k'] -= 3\ndel d['k']\nn = 3\nn **= 2\n",
    "class A:\n    n = 1\n    def up(self):\n        self.n += 1\n        return self\na = A().up().n\n",
    "import numpy\nx = numpy.arange(12).reshape(3, 4)\nx[1] += x[0]\nx[x > 9] = 0\ny = x[[0, 2], 1:3] @ x[:2, :2]\n",
    "def f(*a, k=1, **o):\n    return sum(a) + k + len(o)\nr = f(*[1, 2], k=3, z=0) if not [] else None\n",
    "s = f'{[1][0]!r:>3}'\nt = (lambda i: i[0])([4])\nq, *w = [1, 2, 3]\nu = 1 < len(w) <= 2 and w is not None\n",
    "i = 0\nwhile i < 3:\n    i += 1\n    if i == 2:\n        break\nelse:\n    i = 9\nx = i if i else -i\n",
]


@pytest.mark.parametrize("text", PROGRAMS)
def test_it_does_what_python_does(text):
    plain = {}
    exec(text, plain)  # noqa: S102 - a text of this file
    got = ran(text)
    for name, value in plain.items():
        if not name.startswith("__") and not callable(value) and not inspect.ismodule(value):
            np.testing.assert_array_equal(got[name], value)


def test_lines_keep_their_numbers():
    with pytest.raises(ZeroDivisionError) as caught:
        ran("a = [0]\n\na[0] = (1 /\n    a[0])\n")
    lines = [
        frame.lineno for frame in traceback.extract_tb(caught.value.__traceback__) if frame.filename == "written.py"
    ]
    assert lines == [3]


def test_loops_are_lines_of_while():
    assert loops_of("x = 1\nwhile x:\n    x = 0\n    x = 0\nfor y in []:\n    pass\n") == {2, 3, 4}


def test_every_operator_in_place_is_known():
    operators = {"+", "-", "*", "/", "//", "%", "**", "<<", ">>", "|", "^", "&", "@"}
    for sign in operators:
        tree = rewritten(f"a {sign}= b\na[0] {sign}= b\n", "x.py")
        assert not any(isinstance(node, ast.AugAssign) for node in ast.walk(tree))


VIEWS = [
    lambda x: x,
    lambda x: x[3],
    lambda x: x[:, 1],
    lambda x: x[1:4, 2:5],
    lambda x: x.T,
    lambda x: x[::-1, ::2],
    lambda x: x.reshape(-1)[5:20:3],
    lambda x: x[2, 3:4],
    lambda x: x[4, 5, ...],
    lambda x: np.broadcast_to(x[1], (3, 6)),
    lambda x: x[0:0],
    lambda x: x.reshape(2, 3, 5)[:, 1:, ::2] if x.size == 30 else x,
]


@pytest.mark.parametrize("number", range(len(VIEWS)))
def test_a_view_is_found_again_element_by_element(number):
    flat = np.zeros(30, np.int32)
    block = Block("key", "x", flat, None)
    view = VIEWS[number](flat.reshape(5, 6))
    marked = np.zeros(30, bool)
    for run in block.runs(view):
        assert not marked[sliced(run)].any()
        marked[sliced(run)] = True
    flat[:] = np.arange(30)
    np.testing.assert_array_equal(np.flatnonzero(marked), np.unique(view))


def test_runs_of_offsets():
    assert runs_of(np.array([3, 5, 7])) == [(3, 3, 2)]
    assert runs_of(np.array([3, 4, 9])) == [(3, 2, 1), (9, 1, 1)]
    assert runs_of(np.zeros(0, int)) == []
