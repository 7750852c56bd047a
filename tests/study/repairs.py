"""What tests of repairs share: a repair as an audit prints it, pasted where it says."""

from __future__ import annotations

import re
from functools import cache, partial
from pathlib import Path

import trio

from asyncsim.checking.record.locate import locate
from asyncsim.checking.verdict.check import check
from asyncsim.checking.verdict.models import AUTO
from asyncsim.study.audit import AuditReport
from asyncsim.study.repair import repair
from asyncsim.views.audit import audit_text

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")


@cache
def looked_for(kernel, **options):
    """Return the audit of a kernel with its repairs, and without its rows: they are another matter."""
    report = check(kernel, **options)
    repairs = trio.run(partial(repair, report, memory=options.get("memory", AUTO)))
    return AuditReport(report, report, repairs=repairs.found, unrepaired=repairs.note)


def changed(audited):
    """Return what the printed repair makes of each line of the source that it touches: (taken away, added)."""
    lines = printed(audited)
    return [line[1:].strip() for line in lines if line[0] == "-"], [
        line[1:].strip() for line in lines if line[0] == "+"
    ]


def printed(audited):
    """Return the lines of the printed diff, without its head."""
    lines = audit_text(audited).splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("--- "))
    assert lines[start + 1].startswith("+++ ")
    end = next(n for n in range(start, len(lines)) if not lines[n])
    return lines[start + 2 : end]


def pasted(audited, folder):
    """Return the kernel of the file that the printed diff makes."""
    kernel = audited.report.case.kernel
    source = Path(kernel.program.__code__.co_filename)
    old = source.read_text("utf-8").splitlines()
    new, at = [], 0
    for line in printed(audited):
        hunk = _HUNK.match(line)
        if hunk:
            start = int(hunk[1]) - (hunk[2] != "0")
            new += old[at:start]
            at = start
        elif line[0] == "+":
            new.append(line[1:])
        else:
            assert old[at] == line[1:]
            new += [old[at]] if line[0] == " " else []
            at += 1
    file = folder / source.name
    file.write_text("\n".join([*new, *old[at:]]) + "\n", "utf-8")
    return locate(f"{file}:{kernel.name}")
