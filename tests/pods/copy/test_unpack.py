"""Archives of a hostile container: what is written of them, and what is refused."""

from __future__ import annotations

import io
import random
import shutil
import tarfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.trees import describe_tree
from trioformer.client import Api
from trioformer.errors import CopyFailedError
from trioformer.models.core_v1 import Pod
from trioformer.pods import copy_from_pod
from trioformer.pods._copy._results import CopyProblem, CopyResult, Counter
from trioformer.pods._copy._unpack import Unpacker
from trioformer.testing import ScriptedPod, ScriptedProcess

END = bytes(1024)


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", mode: int = 0o644, **fields: object) -> bytes:
    """Return the header of a file; what belongs to its name comes before it."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, target, mode
    for field, value in fields.items():
        setattr(info, field, value)
    return info.tobuf(tarfile.GNU_FORMAT)


def file(name: str, data: bytes = b"x", **fields: object) -> bytes:
    return member(name, size=len(data), **fields) + data + bytes(-len(data) % 512)


def directory(name: str, mode: int = 0o755) -> bytes:
    return member(name, tarfile.DIRTYPE, mode=mode)


def link(name: str, target: str) -> bytes:
    return member(name, tarfile.SYMTYPE, target)


def same(name: str, target: str) -> bytes:
    return member(name, tarfile.LNKTYPE, target)


def attributes(values: dict[str, str]) -> bytes:
    """Return the attributes of the file that follows."""
    data = b"".join(_record(f"{key}={value}\n") for key, value in values.items())
    return member("attributes", tarfile.XHDTYPE, size=len(data)) + data + bytes(-len(data) % 512)


def _record(text: str) -> bytes:
    size = len(text) + 3
    return f"{size if len(str(size)) == 2 else size - 1} {text}".encode()


@pytest.fixture
def copy(web: ScriptedPod, pods: Api[Pod], here: Path) -> Callable[..., Awaitable[CopyResult]]:
    """Copies "data" out of a container that sends an archive."""

    async def receive(*archive: bytes, source: str = "data", step: int = 30_000) -> CopyResult:
        async def send(process: ScriptedProcess) -> None:
            data = b"".join(archive)
            for start in range(0, len(data), step):
                await process.stdout.send_all(data[start : start + step])

        web.on_exec(send)
        shutil.rmtree(here / "inside", ignore_errors=True)
        (here / "inside").mkdir()
        return await copy_from_pod(pods, "web-0", source, here / "inside" / "copy")

    return receive


OUTSIDE = {
    "above": [file("../evil")],
    "the directory above": [directory("data"), directory("data/..")],
    "absolute directory": [directory("/data")],
    "not requested": [directory("data"), file("other/evil")],
    "a second file": [file("data"), file("data")],
    "a file instead of the directory": [directory("data"), file("data")],
    "another name of what is above": [directory("data"), same("data/evil", "../outside")],
    "another name of the directory": [directory("data"), same("data/evil", "data")],
    "posix name": [
        directory("data"),
        tarfile.TarInfo.create_pax_global_header({"path": "../evil"}),
        file("data/file"),
    ],
}


async def test_a_path_that_leaves_the_target_is_an_error(
    copy: Callable[..., Awaitable[CopyResult]], here: Path
) -> None:
    for name in OUTSIDE:
        (here / "outside").write_text("unharmed")
        with pytest.raises(CopyFailedError, match=r"the archive contains '.*', which was not requested$"):
            await copy(*OUTSIDE[name], END)
        assert (here / "outside").read_text() == "unharmed"
        assert sorted(each for each in describe_tree(here) if "evil" in each) == []


THROUGH = {
    "a link": [link("data/l", "."), file("data/l/evil")],
    "a directory in a link": [directory("data/a"), link("data/l", "a"), directory("data/l/evil")],
    "a link in a link": [directory("data/a"), link("data/l", "a"), link("data/l/evil", "x")],
    "another name through a link": [
        directory("data/a"),
        file("data/a/file"),
        link("data/l", "a"),
        same("data/evil", "data/l/file"),
    ],
    "a file": [file("data/l"), file("data/l/evil")],
}


async def test_nothing_is_written_through_a_link(copy: Callable[..., Awaitable[CopyResult]], here: Path) -> None:
    for name in THROUGH:
        with pytest.raises(CopyFailedError, match=r"'.*/l' is not a directory but a symbolic link or file"):
            await copy(directory("data"), *THROUGH[name], END)
        assert [each for each in describe_tree(here) if "evil" in each] == []


async def test_another_name_of_a_link_is_an_error(copy: Callable[..., Awaitable[CopyResult]]) -> None:
    archive = [directory("data"), link("data/\x1b\n", "file"), same("data/evil", "data/\x1b\n"), END]
    with pytest.raises(CopyFailedError, match=r"\\x1b\\n' is not a regular file, so no hard link"):
        await copy(*archive)


async def test_a_link_is_copied_if_it_leads_inside(copy: Callable[..., Awaitable[CopyResult]], here: Path) -> None:
    for place, target, is_inside in [
        ("l", "a", True),
        ("a/l", "..", True),
        ("a/b/l", "../../c", True),
        ("a/b/l", "../../../c", False),
        ("l", "..", False),
        ("l", "//a", False),
        ("l", "a/../../x", False),
        ("a/l", "b/../../x", False),
    ]:
        result = await copy(directory("data"), link(f"data/{place}", target), END)
        assert (result.links, result.skipped_count) == ((1, 0) if is_inside else (0, 1))
        assert (here / "inside" / "copy" / place).is_symlink() == is_inside


async def test_a_later_file_of_the_same_name_replaces_the_link_and_not_its_target(
    copy: Callable[..., Awaitable[CopyResult]], here: Path
) -> None:
    await copy(directory("data"), file("data/a", b"old"), link("data/l", "a"), file("data/l", b"new"), END)
    assert describe_tree(here / "inside" / "copy") == {"a": ("0o644", b"old"), "l": ("0o644", b"new")}


DAMAGED = {
    "nothing": [],
    "no archive": [b"tar: command not found\n"],
    "no end": [directory("data"), file("data/a")],
    "half a file": [directory("data"), file("data/a", bytes(5_000))[:2_000]],
    "a wrong checksum": [directory("data"), file("data/a").replace(b"data/a", b"data/b"), END],
    "a long name of 8 GiB": [directory("data"), member("././@LongLink", tarfile.GNUTYPE_LONGNAME, size=8 << 30)],
    "a name of less than no bytes": [directory("data"), member("././@LongLink", tarfile.GNUTYPE_LONGNAME, size=-512)],
    "a file of less than no bytes": [directory("data"), member("data/a", size=-5_000), END],
    "nothing but the end": [END],
    "a path of 20,000 characters": [directory("data"), file("data/" + "x/" * 10_000), END],
    "attributes in attributes": [directory("data"), *[attributes({"a": "b"})] * 900, file("data/a"), END],
    "too many global attributes": [
        directory("data"),
        tarfile.TarInfo.create_pax_global_header({str(each): "" for each in range(2_000)}),
        file("data/a"),
        END,
    ],
    "a sparse file of no numbers": [directory("data"), attributes({"GNU.sparse.map": "x,y"}), file("data/a"), END],
    "a sparse file of less than no bytes": [
        directory("data"),
        attributes({"GNU.sparse.map": "0,1", "GNU.sparse.size": "-4"}),
        file("data/a"),
        END,
    ],
    "a sparse file without a map": [
        directory("data"),
        attributes({"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}),
        file("data/a", b"x\n"),
        END,
    ],
}


async def test_a_damaged_archive_is_an_error(copy: Callable[..., Awaitable[CopyResult]], here: Path) -> None:
    for name in DAMAGED:
        with pytest.raises(CopyFailedError, match=r"the archive is (damaged: .*|empty)$"):
            await copy(*DAMAGED[name], step=1_000)
        assert [each for each in describe_tree(here) if each.endswith("part")] == []


def test_random_damage_never_leaves_the_target(here: Path) -> None:
    pick = random.Random(0)
    archive = bytearray().join(
        [directory("data"), file("data/a" * 30), link("data/l", "a"), directory("data/d", 0o500), file("data/d/f"), END]
    )
    failed = 0
    for index in range(80):
        damaged = bytearray(archive)
        for _ in range(pick.randrange(1, 4)):
            damaged[pick.randrange(len(damaged))] = pick.randrange(256)
        stream = io.BytesIO(damaged)
        unpacker = Unpacker(partial(stream.read, 1_000), "data", str(here / str(index)), Counter())
        try:
            unpacker.run()
        except CopyProblem:
            failed += 1
        finally:
            unpacker.close()
        assert {each.name for each in here.iterdir()} <= {str(index)}
        shutil.rmtree(here / str(index), ignore_errors=True)
    assert 16 < failed < 80


async def test_no_setuid_is_copied_and_no_owner(copy: Callable[..., Awaitable[CopyResult]], here: Path) -> None:
    archive = [directory("data", 0o7777), file("data/a", mode=0o7777, uid=4_711), directory("data/d", 0o6000), END]
    await copy(*archive)
    copied = here / "inside" / "copy"
    assert copied.stat().st_mode & 0o7777 == 0o777
    assert describe_tree(copied) == {"a": ("0o777", b"x"), "d": "0o0"}
    assert (copied / "a").stat().st_uid == copied.stat().st_uid


async def test_devices_and_unknown_types_are_skipped(copy: Callable[..., Awaitable[CopyResult]], here: Path) -> None:
    result = await copy(
        directory("data"),
        member("data/null", tarfile.CHRTYPE, devmajor=1, devminor=3),
        member("data/disk", tarfile.BLKTYPE),
        file("data/unknown", b"content", type=b"Z"),
        file("data/after"),
        END,
    )
    unknown = "a file of the unknown type b'Z'"
    assert result.skipped == {"null": "a device", "disk": "a device", "unknown": unknown}
    assert sorted(describe_tree(here / "inside" / "copy")) == ["after"]


async def test_directories_need_not_be_in_the_archive(copy: Callable[..., Awaitable[CopyResult]], here: Path) -> None:
    await copy(file("./data/a/b/c"), file("data//a/d"), END)
    assert sorted(describe_tree(here / "inside" / "copy")) == ["a", "a/b", "a/b/c", "a/d"]


async def test_only_some_of_many_skipped_files_are_named(copy: Callable[..., Awaitable[CopyResult]]) -> None:
    links = [link(f"data/{index}", "/") for index in range(1_500)]
    result = await copy(directory("data"), *links, END)
    assert (len(result.skipped), result.skipped_count) == (1_000, 1_500)


async def test_all_formats_are_read_however_they_arrive(copy: Callable[..., Awaitable[CopyResult]], here: Path) -> None:
    for form in [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]:
        names = ["data/" + "long" * 30 + "/file", "data/ü", "data/big"]
        with io.BytesIO() as buffer:
            with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
                for name in names:
                    info = tarfile.TarInfo(name)
                    info.size = 300_001 if name.endswith("big") else 10
                    archive.addfile(info, io.BytesIO(b"y" * info.size))
            data = buffer.getvalue()
        result = await copy(data + b"rubbish after the end", step=511)
        assert result.bytes == 300_021
        assert (here / "inside" / "copy" / ("long" * 30) / "file").read_bytes() == b"y" * 10
        assert (here / "inside" / "copy" / "big").read_bytes() == b"y" * 300_001
