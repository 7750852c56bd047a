"""The journal of an exploration: what was done is not done again, what was found is not lost."""

from __future__ import annotations

import json
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from click.testing import CliRunner

from asyncsim import MisuseError, TraceError, explore
from asyncsim.checking.search.shard import Shard
from asyncsim.checking.workers.batch import Batch, CaseSpec, run_batch
from asyncsim.checking.workers.journal import Journal
from asyncsim.cli.main import main
from kernels.reduce_scatter import builtin, hand, hand_no_epilogue

RUNS = 60


def text_of(report):
    facts = report.to_json()
    del facts["seconds"]
    return json.dumps(facts)


@pytest.fixture(scope="module")
def undisturbed():
    return text_of(explore(hand_no_epilogue, ranks=3, runs=RUNS))


def stop_at(number):
    def told(now):
        if now.done >= number:
            raise KeyboardInterrupt

    return told


def explored(path, **more):
    return explore(hand_no_epilogue, **{"ranks": 3, "runs": RUNS, "resume": path, **more})


def parts_of(path):
    return [made["part"] for made in map(json.loads, path.read_text().splitlines()) if "part" in made]


def test_an_exploration_that_was_interrupted_goes_on_and_reports_the_whole(tmp_path, undisturbed):
    path = tmp_path / "new" / "journal"
    first = explored(path, progress=stop_at(7))
    assert first.interrupted
    assert first.scope.startswith(f"7 of {RUNS} schedules sampled")
    assert first.findings
    with ThreadPoolExecutor(2) as executor:
        second = explored(path, progress=stop_at(30), executor=executor, jobs=2)
    assert second.interrupted
    assert text_of(explored(path)) == undisturbed
    done = sorted((part["start"], part["start"] + part["count"]) for part in parts_of(path))
    assert [start for start, _ in done] == [0, *(stop for _, stop in done[:-1])]  # each schedule was run once
    assert done[-1][1] == RUNS


def test_what_is_complete_is_not_run_again_and_more_runs_go_on_from_there(tmp_path, undisturbed):
    path = tmp_path / "journal"
    assert text_of(explored(path)) == undisturbed
    size = path.stat().st_size
    told = []
    assert text_of(explored(path, progress=told.append)) == undisturbed
    assert (path.stat().st_size, told) == (size, [])
    more = explored(path, runs=RUNS + 20, progress=told.append)
    assert [now.done for now in told] == list(range(RUNS + 1, RUNS + 21))
    assert text_of(more) == text_of(explore(hand_no_epilogue, ranks=3, runs=RUNS + 20))


def test_fewer_runs_than_the_journal_holds_are_reported_as_if_alone(tmp_path):
    path = tmp_path / "journal"
    explored(path)
    assert text_of(explored(path, runs=25)) == text_of(explore(hand_no_epilogue, ranks=3, runs=25))
    assert text_of(explored(path)) == text_of(explore(hand_no_epilogue, ranks=3, runs=RUNS))


@pytest.mark.parametrize(
    ("more", "difference"),
    [
        ({"ranks": 2}, "ranks 3 there, 2 here"),
        ({"calls": 1}, "calls 2 there, 1 here"),
        ({"memory": "nic"}, "memory 'sc' there, 'nic' here"),
        ({"seed": 4}, "seed 0 there, 4 here"),
        ({"scheduler": "random"}, "plan 'mixed' there, 'random' here"),
        ({"behaviours": False}, "behaviours True there, False here"),
    ],
)
def test_the_journal_of_another_exploration_is_refused(tmp_path, more, difference):
    path = tmp_path / "journal"
    explored(path, runs=5)
    before = path.read_bytes()
    with pytest.raises(MisuseError, match=f"another exploration: .*{difference}"):
        explored(path, **more)
    with pytest.raises(
        MisuseError, match=r"kernel 'kernels.reduce_scatter:hand_no_epilogue' there, '\S*:builtin' here"
    ):
        explore(builtin, ranks=3, resume=path)
    assert path.read_bytes() == before


def test_the_journal_of_another_source_is_refused(tmp_path):
    path = tmp_path / "journal"
    explored(path, runs=5)
    lines = path.read_text().splitlines(keepends=True)
    rest = lines[0][len('{"crc":"01234567",') :].rstrip("\n").replace(hand.source, "0" * 16)
    path.write_text(f'{{"crc":"{zlib.crc32(rest.encode()):08x}",{rest}\n' + "".join(lines[1:]))
    with pytest.raises(MisuseError, match=f"source '{'0' * 16}' there, '{hand.source}' here"):
        explored(path)


@pytest.mark.parametrize("cut", [1, 2, 40])
def test_a_last_line_that_was_cut_off_is_done_again(tmp_path, undisturbed, cut):
    path = tmp_path / "journal"
    explored(path)
    path.write_bytes(path.read_bytes()[:-cut])
    assert text_of(explored(path)) == undisturbed
    assert text_of(explored(path)) == undisturbed
    assert all(line.endswith("}") for line in path.read_text().splitlines())


def test_damage_before_the_last_line_is_told_with_its_line(tmp_path):
    path = tmp_path / "journal"
    explored(path, progress=stop_at(7))
    explored(path)
    lines = path.read_text().splitlines(keepends=True)
    assert len(lines) > 3
    path.write_text("".join([lines[0], lines[1].replace('"schedule":', '"scheduIe":'), *lines[2:]]))
    with pytest.raises(TraceError, match="line 2: damaged: its checksum does not fit"):
        explored(path)
    rest = '"wrong":1}'
    path.write_text(lines[0] + f'{{"crc":"{zlib.crc32(rest.encode()):08x}",{rest}\n')
    with pytest.raises(TraceError, match="line 2: not a line of a journal"):
        explored(path)


def line_of(rest):
    return f'{{"crc":"{zlib.crc32(rest.encode()):08x}",{rest}\n'


def set_in(part, *path, value):
    for name in path[:-1]:
        part = part[name] if name != "*" else next(iter(part.values()))
    part[path[-1]] = value


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["start"], -5, "'start' is -5; it must be an integer, at least 0"),
        (["start"], "0", "'start' is '0'; it must be an integer"),
        (["start"], True, "'start' is True"),
        (["count"], 0, "'count' is 0; it must be an integer, at least 1"),
        (["count"], 300, "the length of 'behaviours' is"),
        (["behaviours"], "", "7 schedules with 0 behaviours"),
        (["behaviours"], 5, "'behaviours' is 5; it must be a text"),
        (["other_bits"], 8, "'other_bits' is 8; it must be an integer, 0 to 7"),
        (["times"], {"x": 1}, "the keys of 'first' are"),
        (["first", "*", "choices"], 3, "'choices' is 3; it must be a text"),
        (["first", "*", "finding", "kind"], "rcae", "'kind' is 'rcae'; it must be one of race"),
        (["first", "*", "finding", "pairs"], "1", "'pairs' is '1'"),
        (["first", "*", "finding", "harmful"], 1, "'harmful' is 1; it must be true or false"),
    ],
)
def test_a_line_with_a_right_checksum_and_wrong_content_is_told_with_its_line(tmp_path, path, value, message):
    journal = tmp_path / "journal"
    explored(journal, progress=stop_at(7))
    head, *found, _ = journal.read_text().splitlines(keepends=True)
    (part,) = parts_of(journal)
    set_in(part, *path, value=value)
    journal.write_text(head + "".join(found) + line_of(json.dumps({"part": part})[1:]))
    before = journal.read_bytes()
    with pytest.raises(TraceError, match=f"line {len(found) + 2}: not a line of a journal .*{message}"):
        explored(journal)
    assert journal.read_bytes() == before


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ('"part":' + "[" * 100_000 + "]" * 100_000 + "}", "nested deeper than 32"),
        ('"part":nothing}', "no JSON"),
        ('"found":{"finding":{}},"schedule":0,"key":"x"}', "a finding has no 'kind'"),
    ],
)
def test_a_line_that_cannot_be_read_is_told_with_its_line(tmp_path, rest, message):
    path = tmp_path / "journal"
    explored(path, runs=1)
    path.write_text(path.read_text().splitlines(keepends=True)[0] + line_of(rest))
    with pytest.raises(TraceError, match=f"line 2: not a line of a journal .*{message}"):
        explored(path)


def test_what_was_found_beyond_the_runs_is_not_reported(tmp_path):
    path = tmp_path / "journal"
    explored(path)
    lines = path.read_text().splitlines(keepends=True)
    (found,) = [made for made in map(json.loads, lines) if "found" in made][:1]
    facts = {"found": found["found"], "schedule": RUNS + 5, "key": "beyond"}
    path.write_text(lines[0] + line_of(json.dumps(facts)[1:]))

    report = explored(path, progress=stop_at(1))
    assert report.interrupted
    assert len(report.findings) <= 1


def test_a_file_that_is_no_journal_is_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("dear diary\n")
    with pytest.raises(TraceError, match="line 1: not the first line of a journal"):
        explored(path)
    assert path.read_text() == "dear diary\n"
    rest = '"found":1}'
    path.write_text(f'{{"crc":"{zlib.crc32(rest.encode()):08x}",{rest}\n')
    with pytest.raises(MisuseError, match="no journal of an exploration"):
        explored(path)
    done = CliRunner().invoke(main, ["explore", "reduce_scatter:hand", "--resume", str(path)])
    assert done.exit_code == 2


def test_what_a_worker_found_is_on_disk_before_its_batch_is_done_and_outlives_it(tmp_path):
    path = tmp_path / "journal"
    explored(path, runs=1)
    path.write_text(path.read_text().splitlines(keepends=True)[0])
    spec = CaseSpec(
        "kernels.reduce_scatter:hand_no_epilogue", hand.source, 3, 2, "sc", 0, behaviours=True, journal=str(path)
    )
    part = run_batch(Batch(spec, 40, ("random:seed=1", "random:seed=2", "random:seed=3")))
    found = [made for made in map(json.loads, path.read_text().splitlines()) if "found" in made]
    assert [made["key"] for made in found] == list(part.first)
    # The batch was never reported: whoever goes on, and is interrupted at once, knows of it all the same.
    report = explored(path, progress=stop_at(1))
    assert report.interrupted
    assert any("first under random:seed=" in finding.shown for finding in report.findings)


def test_a_worker_elsewhere_does_without_the_file(tmp_path):
    path = tmp_path / "not" / "here"
    spec = CaseSpec("kernels.reduce_scatter:hand", hand.source, 3, 2, "sc", 0, behaviours=True, journal=str(path))
    assert run_batch(Batch(spec, 0, ("starve:rank=0",))).first
    assert not path.parent.exists()


def test_with_several_jobs_a_folder_of_witnesses_holds_a_journal(tmp_path):
    for _ in range(2):  # the second time it starts anew
        with ThreadPoolExecutor(1) as executor:
            report = explored(None, save=tmp_path, executor=executor)
        (path,) = tmp_path.glob("*.journal")
        assert path.name == "kernels.reduce_scatter-hand_no_epilogue-P3-calls2-sc.journal"
        assert sum(part["count"] for part in parts_of(path)) == RUNS
    facts = {finding.to_json()["why"] for finding in report.findings}
    assert {failure["finding"]["why"] for part in parts_of(path) for failure in part["first"].values()} >= facts


def test_a_part_comes_back_from_json_as_it_was():
    spec = CaseSpec("kernels.reduce_scatter:hand_no_epilogue", hand.source, 3, 2, "sc", 0, behaviours=True)
    part = run_batch(Batch(spec, 7, ("starve:rank=0", "random:seed=5", "pos:seed=1")))
    assert part.first
    assert len(part.behaviours) == 3
    assert Shard.of_json(json.loads(json.dumps(part.to_json()))) == part


def test_parts_that_overlap_count_each_schedule_once(tmp_path):
    subject = {"what": "this"}
    journal = Journal(tmp_path / "j", subject)
    for start, count in [(4, 4), (0, 4), (0, 6), (8, 0)]:
        journal.add(Shard(start, count))
    journal.close()
    again = Journal(tmp_path / "j", subject)
    again.close()
    assert [(part.start, part.stop) for part in again.shards] == [(0, 4), (4, 8)]


def test_the_command_resumes(tmp_path):
    command = ["explore", "reduce_scatter:hand", "-P", "2", "--json", "--resume", str(tmp_path / "j")]
    first = json.loads(CliRunner().invoke(main, [*command, "--runs", "10"]).stdout)
    again = json.loads(CliRunner().invoke(main, [*command, "--runs", "30"]).stdout)
    assert (first["schedules"], again["schedules"]) == (11, 31)
    assert sum(part["count"] for part in parts_of(tmp_path / "j")) == 30
