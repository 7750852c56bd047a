"""Tokens: a run in one line, which comes back as it was or not at all."""

from __future__ import annotations

import base64
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncsim import TraceError
from asyncsim.trace import token as tokens
from asyncsim.trace.token import PREFIX, Token, decode, encode

TOKEN = Token(
    kernel="kernels.reduce_scatter:hand", source="0123456789abcdef", ranks=2, calls=2, memory="sc", seed=7,
    choices=("0", "0", "1", "0"), ending="deadlock",
)  # fmt: skip


def packed(text: str | bytes) -> str:
    raw = text if isinstance(text, bytes) else text.encode()
    return PREFIX + base64.urlsafe_b64encode(zlib.compress(raw)).rstrip(b"=").decode()


def changed(old: str, new: str) -> str:
    text = tokens._unpacked(encode(TOKEN).removeprefix(PREFIX))
    assert old in text
    return packed(text.replace(old, new, 1))


names = st.text(st.characters(codec="utf-8"), max_size=8)


@given(
    st.builds(
        Token,
        kernel=names,
        source=st.sampled_from(["", "00000000000000ff"]),
        ranks=st.integers(1, 99),
        calls=st.integers(1, 9),
        memory=names,
        seed=st.integers(0, 1 << 200),
        choices=st.lists(names, max_size=30).map(tuple),
        edits=st.lists(names, max_size=2).map(tuple),
        ending=st.sampled_from([None, "complete", "overflow"]),
    )
)
def test_a_token_comes_back_as_it_was(token):
    assert decode(f" {encode(token)}\n") == token


def test_a_long_schedule_is_a_short_token():
    long = Token(kernel="k:k", source="", ranks=2, calls=1, memory="sc", seed=0, choices=("0",) * 5000 + ("1",) * 5000)
    assert len(encode(long)) < 200
    assert decode(encode(long)) == long


@given(st.integers(len(PREFIX), len(encode(TOKEN)) - 1), st.sampled_from("Aq7-_.!é\n"))
def test_a_damaged_token_gives_an_error_or_the_same_run(at, sign):
    text = encode(TOKEN)
    try:
        assert decode(text[:at] + sign + text[at + 1 :]) == TOKEN
    except TraceError as error:
        assert error.line is None  # noqa: PT017 - either way out is right
        assert str(error).startswith("token: ")  # noqa: PT017 - as above


@given(st.integers(0, len(encode(TOKEN)) - 1))
def test_a_truncated_token_gives_an_error(length):
    with pytest.raises(TraceError):
        decode(encode(TOKEN)[:length])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "does not begin with 'as1.'"),
        ("as2.AAAA", "does not begin with 'as1.'"),
        ("as1.AA$A", "characters that no token has"),
        ("as1.AAAAA", "truncated, or a character too long"),
        ("as1.AAAA", "cannot be unpacked"),
        (PREFIX + base64.urlsafe_b64encode(zlib.compress(b"x") + b"abc").rstrip(b"=").decode(), "follows its end"),
        (PREFIX + base64.urlsafe_b64encode(zlib.compress(b"x" * 99)[:-4]).rstrip(b"=").decode(), "truncated"),
        (packed(b"\xff\n"), "no text"),
        (packed("{}"), "first line is not whole"),
        (packed("[]\n"), "must be an object"),
        (packed("{}\n"), "no 'kernel'"),
        (packed('{"kernel":NaN}\n'), "NaN is no JSON"),
        (changed('"seed":7', '"seed":7,"seed":8'), "stands twice"),
        (changed('"seed":7', '"seed":-7'), "'seed' is -7"),
        (changed('"seed":7', f'"seed":{"9" * 101}'), "101 digits"),
        (changed('"ranks":2', '"ranks":0'), "'ranks' is 0"),
        (changed('"ranks":2', '"ranks":99999'), "'ranks' is 99999"),
        (changed("0123456789abcdef", "0123"), "16 hex digits"),
        (changed("deadlock", "tired"), "one of complete"),
        (changed("0*2,1,0", "0*2,2,0"), "no part of a schedule of 2 actors"),
        (changed("0*2,1,0", "0*2,1,"), "no part of a schedule"),
        (changed("0*2,1,0", "0*0,1"), "empty run"),
        (changed("0*2,1,0", "0*10000001"), "more than 10000000 choices"),
    ],
)
def test_what_is_no_token_is_refused_with_a_reason(text, reason):
    with pytest.raises(TraceError, match="token: ") as caught:
        decode(text)
    assert reason in caught.value.reason


def test_a_schedule_that_is_too_long_is_not_unrolled(monkeypatch):
    monkeypatch.setattr(tokens, "MAX_CHOICES", 3)
    with pytest.raises(TraceError, match="more than 3 choices"):
        decode(encode(TOKEN))


def test_a_bomb_is_not_unpacked(monkeypatch):
    monkeypatch.setattr(tokens, "MAX_BYTES", 1 << 20)
    with pytest.raises(TraceError, match="unpacks to more than 1 MiB"):
        decode(packed(b" " * (2 << 20)))
