"""``asyncsim torchrun`` and ``pypto``: what scripts do to the output streams, and the verdict after it."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest
from command import GOOD, ROOT, run, run_process

from asyncsim.trace.lent import Lent, flush_streams, streams_lent

START = """
import builtins, contextlib, io, sys
import numpy as np
from asyncsim.frontends import torch_dist as dist
dist.init_process_group()
rank = dist.get_rank()
"""
REDUCE = "\ndist.all_reduce(np.ones(2))\n"
SILENCED = {
    "devnull": ("if rank: sys.stdout = io.StringIO()", [0]),
    "closed": ("if rank == 0: sys.stdout.close(); sys.stderr.close()", [1]),
    "redirected": (
        "stack = contextlib.ExitStack()\nstack.enter_context(contextlib.redirect_stdout(io.StringIO()))",
        [],
    ),
    "print": ("told = builtins.print\nbuiltins.print = lambda *a, **k: rank == 0 and told(*a, **k)", [0]),
    "stderr": ("sys.stderr = io.StringIO()", [0, 1]),
}


@pytest.mark.parametrize("how", SILENCED)
def test_a_rank_that_silences_itself_silences_neither_the_others_nor_the_verdict(how, tmp_path):
    body, heard = SILENCED[how]
    script = tmp_path / "script.py"
    script.write_text(f"{START}{body}{REDUCE}try: print('rank', rank)\nexcept ValueError: pass\n")
    ran = run("torchrun", "-n", "2", str(script))
    assert (ran.exit_code, ran.stderr) == (0, "")
    lines = ran.stdout.splitlines()
    assert lines[: len(heard)] == [f"rank {rank}" for rank in heard]
    assert lines[len(heard)].startswith("PROVED ")


def test_a_refuted_script_shows_why_although_a_rank_silenced_itself(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        f"{START}if rank: sys.stdout = sys.stderr = io.StringIO()\n"
        "try: dist.all_reduce(np.ones(2), dist.ReduceOp.SUM if rank else dist.ReduceOp.MAX)\n"
        "except RuntimeError: pass\n"
    )
    ran = run("torchrun", "-n", "2", str(script))
    assert (ran.exit_code, ran.stdout.startswith("REFUTED ")) == (1, True)


CLOSING = [
    "import sys; print('said'); sys.stdout.close()",
    "import sys; print('said'); sys.stdout.buffer.close(); sys.stderr.close()",
    "import sys, io; sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8'); print('said')",
    "import sys, io; sys.stdout = io.TextIOWrapper(sys.stdout.detach(), encoding='utf-8'); print('said')",
    "import sys, os; sys.stdout = os.fdopen(sys.stdout.fileno(), 'w'); print('said')",
]


@pytest.mark.parametrize("command", ["torchrun", "pypto"])
@pytest.mark.parametrize("text", CLOSING)
def test_a_script_may_close_its_output_and_what_is_said_of_it_still_comes_out(command, text, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(text + "\n")
    ran = run_process(command, str(script))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("said\n")
    assert ran.stdout.endswith("; there is nothing to judge\n")


@pytest.mark.parametrize("closed", ["2>&-", ">&-", ">&- 2>&-"])
@pytest.mark.parametrize("prefix", [[], ["--prefix"]])
def test_a_command_whose_output_is_closed_judges_all_the_same(closed, prefix, tmp_path):
    script, report = tmp_path / "script.py", tmp_path / "report.json"
    script.write_text(f"{START}{REDUCE}")
    judged = ["torchrun", *prefix, "--json", str(report), str(script)]
    commands = [judged] if prefix else [judged, ["check", GOOD, "-P", "2"]]
    for arguments in commands:
        shell = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-m", "asyncsim", *arguments]
        ran = subprocess.run(  # noqa: S603 - our own command
            shell, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=240
        )
        assert (ran.returncode, ran.stderr) == (0, "")
        assert ("PROVED" in ran.stdout) == (">&-" not in closed.split())
    assert '"verdict": "PROVED"' in report.read_text("utf-8")


def test_a_lent_stream_is_closed_for_its_borrower_alone(monkeypatch):
    own = io.StringIO()
    with Lent(own) as stream:
        stream.writelines(["a", "b"])
        assert stream.write("c") == 1
        assert stream.readable()
    stream.close()
    for use in (lambda: stream.write("d"), stream.flush, stream.fileno, lambda: stream.writelines([])):
        with pytest.raises(ValueError, match="closed file"):
            use()
    assert (own.getvalue(), own.closed, stream.closed) == ("abc", False, True)
    monkeypatch.setattr(sys, "stdout", None)
    with streams_lent():
        assert sys.stdout is None
        sys.stdout = stream
        flush_streams()
    assert sys.stdout is None


def test_a_lent_stream_names_one_file_descriptor_of_its_own(tmp_path):
    with (tmp_path / "file").open("w") as own:
        stream = Lent(own)
        number = stream.fileno()
        assert number == stream.fileno() != own.fileno()
        os.close(number)
        own.write("still open")
    assert (tmp_path / "file").read_text() == "still open"
