"""What a candidate reads of a Lease that another client wrote: numbers and times without bound."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from trioformer.errors import DecodeError
from trioformer.leaderelection._lease_lock import MAX_INT32, LeaseRecord
from trioformer.models import encode, from_json
from trioformer.models.coordination_v1 import Lease, LeaseSpec


def record_of(field: str, raw: str) -> LeaseRecord:
    return LeaseRecord.of(from_json(Lease, f'{{"metadata":{{"name":"a"}},"spec":{{"{field}":{raw}}}}}'.encode()))


@pytest.mark.parametrize(
    ("raw", "number"),
    [
        ("15", 15),
        ("0", 0),
        ("null", 0),
        ("-1", 0),
        (f"-{10**30}", 0),
        (str(2**31), MAX_INT32),
        (str(10**30), MAX_INT32),
        ("1" + "0" * 400, MAX_INT32),
    ],
)
@pytest.mark.parametrize("field", ["leaseDurationSeconds", "leaseTransitions"])
def test_numbers_are_those_that_kube_apiserver_accepts(field: str, raw: str, number: int) -> None:
    record = record_of(field, raw)
    assert (record.lease_duration_seconds, record.lease_transitions) in ((number, 0), (0, number))
    assert float(record.lease_duration_seconds) <= MAX_INT32


@pytest.mark.parametrize("raw", ["1" + "0" * 5_000, "1e400", "1.5", "true", '"15"', "[]", "{}", "NaN"])
@pytest.mark.parametrize("field", ["leaseDurationSeconds", "leaseTransitions"])
def test_what_is_no_integer_is_a_decode_error(field: str, raw: str) -> None:
    with pytest.raises(DecodeError):
        record_of(field, raw)


@pytest.mark.parametrize(
    ("raw", "time"),
    [
        ('"2026-01-01T02:00:00+02:00"', datetime(2026, 1, 1, tzinfo=UTC)),
        ('"9999-12-31T23:59:59.999999Z"', datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
        ("null", None),
    ],
)
@pytest.mark.parametrize("field", ["acquireTime", "renewTime"])
def test_a_time_of_any_zone_is_read_and_can_be_written(field: str, raw: str, time: datetime | None) -> None:
    record = record_of(field, raw)
    assert (record.acquire_time, record.renew_time) in ((time, None), (None, time))
    written = json.loads(encode(record.written_to(LeaseSpec())))
    assert (field in written and written[field] is not None) == (time is not None)


@pytest.mark.parametrize(
    "raw", ["9999-12-31T23:59:59.999999-23:59", "0001-01-01T00:00:00+23:59", "2026-01-01T00:00:00"]
)
@pytest.mark.parametrize("field", ["acquireTime", "renewTime"])
def test_a_time_in_no_year_of_utc_or_without_a_zone_is_a_decode_error(field: str, raw: str) -> None:
    with pytest.raises(DecodeError):
        record_of(field, f'"{raw}"')
