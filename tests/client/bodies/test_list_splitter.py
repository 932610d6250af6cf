"""Splitting the body of a list while it arrives."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trioformer.client.bodies._list_splitter import SLICE, ListHead, ListSplitter
from trioformer.errors import DecodeError

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ['"items":[', '},{"metadata":{', "\\", '\\"', '"', "[", "]", "},{", '","']
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
pods = st.fixed_dictionaries({"metadata": st.dictionaries(texts, values, max_size=3)}, optional={"spec": values})
headed = st.fixed_dictionaries({"apiVersion": texts, "kind": texts, "metadata": values}, optional={"spec": values})
item_lists = st.lists(pods, max_size=12) | st.lists(headed, max_size=12) | st.lists(values, max_size=12)
separators = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n\t", " :\r\n")])


def split(body: bytes, cuts: list[int], *, block: int, slice_: int = SLICE) -> tuple[list[bytes], ListHead]:
    splitter = ListSplitter(block=block, slice=slice_)
    items: list[bytes] = []
    positions = [0, *sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
    for begin, end in pairwise(positions):
        items += splitter.feed(body[begin:end])
    while (end := splitter.finish()) is None:
        while splitter.is_behind:
            items += splitter.feed(b"")
    rest, head = end
    return items + rest, head


@given(
    items=item_lists,
    others=st.dictionaries(texts.filter(lambda name: name not in ("items", "metadata", "kind", "apiVersion")), values),
    where=st.integers(0, 5),
    separators=separators,
    ascii_only=st.booleans(),
    indent=st.sampled_from([None, None, 1]),
    cuts=st.lists(st.integers(0, 100_000), max_size=30),
    block=st.integers(1, 200),
    slice_=st.integers(2, 200),
)
def test_any_list_in_any_chunks_splits_as_a_json_parser_reads_it(
    items: list[object],
    others: dict[str, object],
    where: int,
    separators: tuple[str, str],
    ascii_only: bool,
    indent: int | None,
    cuts: list[int],
    block: int,
    slice_: int,
) -> None:
    metadata = {"resourceVersion": "7", "continue": "next", "remainingItemCount": 3}
    members = list({**others, "kind": "PodList", "apiVersion": "v1", "metadata": metadata}.items())
    members.insert(where, ("items", items))
    text = json.dumps(dict(members), separators=separators, ensure_ascii=ascii_only, indent=indent)

    found, head = split(text.encode(), cuts, block=block, slice_=slice_)

    assert [json.loads(item) for item in found] == items
    assert head == ListHead(
        kind="PodList", api_version="v1", resource_version="7", continue_token="next", remaining_item_count=3
    )


HEAD = b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":['


def pod(number: int, *, claims: int = 0) -> bytes:
    spec = {"claims": [{"metadata": {"name": f"claim-{i}"}, "x": "y" * 50} for i in range(claims)]}
    item = {"metadata": {"name": f"pod-{number}"}, "spec": spec}
    return json.dumps(item, separators=(",", ":")).encode()


def custom(number: int) -> bytes:
    owners = [{"apiVersion": "v1", "kind": "Pod"}] * 5
    item = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": str(number), "owners": owners}}
    return json.dumps(item, separators=(",", ":")).encode()


def test_items_of_every_form_are_split() -> None:
    for items in [
        [pod(i) for i in range(300)],
        [pod(i, claims=12) for i in range(50)],
        [custom(i) for i in range(100)],
        [pod(i) if i % 3 else custom(i) for i in range(100)],
        [json.dumps({"b": i, "a": [[{"b": 1}, {"b": 2}]] * (i % 3)}).encode() for i in range(100)],
        [b"[%d,[],{}]" % i for i in range(100)],
        [b"%d" % i for i in range(300)],
        [b'"a,b"', b"{}", b'"}, {"', b"[]", b"null"] * 40,
    ]:
        for block in [64, 4_000]:
            for step in [1, 1_000]:
                body = HEAD + b",".join(items) + b"]}"
                found, head = split(body, list(range(0, len(body), step)), block=block)
                assert found == items
                assert head.resource_version == "7"


def test_items_are_returned_before_the_end_of_the_list() -> None:
    splitter = ListSplitter(block=1_000)
    body = HEAD + b",".join(pod(i) for i in range(1_000))
    early = [item for begin in range(0, len(body), 500) for item in splitter.feed(body[begin : begin + 500])]
    assert len(early) > 950
    assert early + splitter.feed(b"]}") + splitter.finish()[0] == [pod(i) for i in range(1_000)]


def test_an_item_larger_than_the_block_has_no_quadratic_cost() -> None:
    splitter = ListSplitter(block=100)
    cuts = 0
    original = ListSplitter._cut

    def counting(self: ListSplitter) -> list[bytes]:
        nonlocal cuts
        cuts += 1
        return original(self)

    big = b'{"metadata":{"name":"%s"}}' % (b"x" * 100_000)
    body = HEAD + big + b"," + pod(1) + b"]}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ListSplitter, "_cut", counting)
        found = [item for begin in range(0, len(body), 10) for item in splitter.feed(body[begin : begin + 10])]
    assert found + splitter.finish()[0] == [big, pod(1)]
    assert cuts < 20


def test_an_invalid_list_is_a_decode_error_of_one_line() -> None:
    for body, text in [
        (b"", "is incomplete"),
        (b"<html><body>login</body></html>", "something that is not JSON"),
        (b"[]", "something that is not JSON"),
        (b'{"kind":"s3cret\\u001b"}', "a JSON object without items"),
        (b'{"kind":"Status","status":"Failure"}', "a Status without items"),
        (b'{"items":{}}', "is incomplete"),
        (b'{"items":[{}]', "is incomplete"),
        (b'{"items":[{},{}]}trailing', "is incomplete"),
    ]:
        for block in [1, 20, 1_000_000]:
            with pytest.raises(DecodeError, match=text) as caught:
                split(body, [len(body) // 2], block=block)
            assert "\n" not in str(caught.value)
            assert len(str(caught.value)) < 400


def test_an_item_that_is_not_json_is_an_item_like_any_other() -> None:
    for block in [1, 20, 1_000_000]:
        for bad in [
            b'{"a":1}{"a":2}',
            b'{"a":nil}',
            b'{"a":[}}',
            b'{"a":"\\ud800"}',
            b'{"a":"\xff"}',
            b"{'a'}",
            b"nil",
        ]:
            items = [b'{"a":"b"}', bad, b'{"a":["]"]}', b"{}"]
            body = b'{"items":[%s],"metadata":{"resourceVersion":"7"}}' % b", ".join(items)
            found, head = split(body, [len(body) // 2], block=block)
            assert found == items
            assert head.resource_version == "7"


def test_a_list_whose_version_or_token_is_not_a_string_is_refused() -> None:
    for value in [b"7", b'["77"]']:
        for name in ["continue", "resourceVersion"]:
            for block in [1, 1_000]:
                body = b'{"metadata":{"%s":%s},"items":[{}]}' % (name.encode(), value)
                with pytest.raises(DecodeError, match=r"is not a string$"):
                    split(body, [20], block=block)
                assert split(body.replace(value, b"null"), [20], block=block)[0] == [b"{}"]


def test_brackets_are_counted_in_slices() -> None:
    splitter = ListSplitter()
    splitter.feed(HEAD)
    splitter.feed(b"[" * 150_000 + b"]" * 149_999 + b"1")
    counted = 0
    while splitter.is_behind:
        before = splitter._position
        splitter.feed(b"")
        assert splitter._position - before <= SLICE
        counted += 1
    assert counted == 300_000 // SLICE


def test_what_is_beside_the_items_is_bounded() -> None:
    for begin in [b'{"a":"', b'{"items":[],"a":"']:
        splitter = ListSplitter(block=1)
        splitter.feed(begin + b"x" * 1_000_000)
        splitter.feed(b"x" * 3_000_000)
        with pytest.raises(DecodeError, match="more than 4194304 bytes outside its items"):
            splitter.feed(b"x" * 1_000_000)


def test_every_incomplete_list_raises() -> None:
    for block in [1, 1_000]:
        body = HEAD + b",".join(pod(i, claims=1) for i in range(3)) + b"]}"
        for length in range(len(body)):
            with pytest.raises(DecodeError):
                split(body[:length], [length // 3, length // 2], block=block)


def test_a_body_with_many_nested_items_is_decoded_at_its_end() -> None:
    rows = b",".join(b'{"object":{"spec":{"items":[%d]}}}' % i for i in range(1_000))
    body = b'{"kind":"Weird","rows":[%s],"items":[{}]}' % rows
    assert split(body, list(range(0, len(body), 50)), block=100)[0] == [b"{}"]
    with pytest.raises(DecodeError, match="a Table without items"):
        split(b'{"kind":"Table","rows":[%s]}' % rows, list(range(0, len(body), 50)), block=100)
