"""Files here and in the container of web-0, for the page that copies them."""

from __future__ import annotations

import io
import tarfile

import trio

from trioformer import Client
from trioformer.testing import APIServer, ScriptedProcess


async def play_tar(process: ScriptedProcess) -> None:
    """Send a directory with one file, or read what arrives."""
    if process.command[0] != "tar":
        await process.stdin.receive_all()
        return
    name = process.command[-1]
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as made:
        directory = tarfile.TarInfo(name)
        directory.type, directory.mode = tarfile.DIRTYPE, 0o755
        made.addfile(directory)
        link = tarfile.TarInfo(f"{name}/localtime")
        link.type, link.linkname = tarfile.SYMTYPE, "/usr/share/zoneinfo/Etc/UTC"
        made.addfile(link)
        made.addfile(tarfile.TarInfo(f"{name}/file"))
    await process.stdout.send_all(archive.getvalue())


async def set_up(client: Client, api_server: APIServer, nursery: trio.Nursery) -> dict[str, object]:
    for name, content in (("index.html", "hello"), ("backup.sql", "CREATE TABLE")):
        folder = trio.Path("." if name.endswith("sql") else "site")
        await folder.mkdir(exist_ok=True)
        await (folder / name).write_text(content)
    api_server.script_pod("web-0").on_exec(play_tar)
    return {}
