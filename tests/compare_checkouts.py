"""Compare two checkouts: the same kernels must get the same verdicts, findings, tokens and traces in both.

``python tests/compare_checkouts.py OLD [NEW]`` runs the exhibits and a thousand random kernels with the
``.venv`` of each checkout and prints what differs; it leaves with 1 if anything does. For changes that
must not change what is judged: moving files, renaming, making things faster.

The random kernels are text, so that both checkouts compile the same: every rank runs a list of stores,
loads, notifies and waits; some of these race, some hang, some are right.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

RANDOM = 1_000
RANKS = (2, 3)
MEMORIES = ("sc", "ldst", "nic")
SHOWN = 20

CHILD = r"""
import hashlib, importlib, io, json, pkgutil, sys
import asyncsim, kernels
from asyncsim.trace.jsonl import write_trace
sys.path.insert(0, sys.argv[1])
import drawn

def judged(name, kernel, ranks, memory):
    row = {}
    try:
        report = asyncsim.check(kernel, ranks=ranks, memory=memory, budget=300, samples=20)
    except asyncsim.AsyncsimError as error:
        return {"error": type(error).__name__}
    said = report.to_json()
    row.update({key: said[key] for key in ("verdict", "models", "steps", "schedules", "one_run")})
    texts = ("why", "trace", "shown")  # the words of a finding may become better
    row["findings"] = [{key: value for key, value in each.items() if key not in texts} for each in said["findings"]]
    trace = asyncsim.simulate(asyncsim.Case(kernel, ranks, memory=memory), asyncsim.Fifo(), record="fifo").trace
    file = io.StringIO()
    write_trace(trace, file)
    row["trace"] = hashlib.sha256(file.getvalue().encode()).hexdigest()
    return row

found = {}
for info in pkgutil.walk_packages(kernels.__path__, "kernels."):
    if "pypto" in info.name:
        continue
    module = importlib.import_module(info.name)
    for name, value in vars(module).items():
        if isinstance(value, asyncsim.Kernel):
            found[f"{info.name}:{name}"] = value
for name, value in vars(drawn).items():
    if isinstance(value, asyncsim.Kernel):
        found[f"drawn:{name}"] = value
ranks_of, memories = json.loads(sys.argv[2]), json.loads(sys.argv[3])
for number, name in enumerate(sorted(found)):
    for ranks in ranks_of:
        memory = memories[number % len(memories)] if name.startswith("drawn") else "sc"
        row = {"name": f"{name} P={ranks} {memory}", **judged(name, found[name], ranks, memory)}
        print(json.dumps(row), flush=True)
"""


def drawn(total: int) -> str:
    """Return the text of a module with so many random kernels."""
    dice = random.Random(7)  # noqa: S311 - the same kernels every time
    lines = [
        "from asyncsim import Set, Signal, Window, kernel",
        "",
        "MEMORY = [Window('w', (4,), 'int64'), Signal('s', (3,))]",
        "",
    ]
    for number in range(total):
        lines += ["@kernel(memory=MEMORY)", f"async def k{number}(rank, w, s):"]
        lines += [f"    {operation(dice)}" for _ in range(dice.randint(3, 7))]
        lines += [""]
    return "\n".join(lines)


def operation(dice: random.Random) -> str:
    """Return one operation: at a neighbour or at the rank itself, on one of few places."""
    place, cell, shift = dice.randrange(4), dice.randrange(3), dice.randrange(2)
    peer = f"(rank.id + {shift}) % rank.size"
    return dice.choice([
        f"await rank.store(w.at({peer})[{place}], {dice.randrange(9)} + rank.id)",
        f"await rank.load(w.at({peer})[{place}])",
        f"await rank.notify(s.at({peer})[{cell}], {dice.choice((1, 1, 1, 2))})",
        f"await rank.notify(s.at({peer})[{cell}], 1, Set)",
        f"await rank.wait(s[{cell}] >= {dice.choice((1, 1, 2))}, consume={dice.random() < 0.3})",
        f"await rank.put(w.at({peer})[{place}], w[{(place + 1) % 4}])",
        "await rank.quiet()",
        "await rank.fence()",
    ])  # fmt: skip


def rows(checkout: Path, folder: str) -> dict[str, dict[str, object]]:
    """Return what a checkout makes of every kernel, by name."""
    command = [checkout / ".venv/bin/python", "-c", CHILD, folder, json.dumps(RANKS), json.dumps(MEMORIES)]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if done.returncode:
        sys.exit(f"{checkout}: {done.stderr}")
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {row.pop("name"): row for row in found}


def main() -> None:
    """Compare, print, leave with 1 if anything differs."""
    old = Path(sys.argv[1])
    new = Path(sys.argv[2]) if len(sys.argv) > 2 else Path()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "drawn.py").write_text(drawn(RANDOM), "utf-8")
        before, after = rows(old.resolve(), folder), rows(new.resolve(), folder)
    differing = [name for name in sorted(before.keys() & after.keys()) if before[name] != after[name]]
    for name in differing[:SHOWN]:
        print(f"{name}\n  old: {before[name]}\n  new: {after[name]}")
    for which, names in (("old", before.keys() - after.keys()), ("new", after.keys() - before.keys())):
        print(f"only in the {which} checkout: {', '.join(sorted(names)) or 'nothing'}")
    counts = Counter(str(row.get("verdict", row.get("error"))) for row in before.values())
    listed = ", ".join(f"{counts[word]} {word}" for word in sorted(counts))
    print(f"{len(before)} judgements ({listed}), {len(differing)} differ")
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
