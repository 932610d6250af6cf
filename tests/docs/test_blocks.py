"""Every code block of the documentation and of the README runs, or says why it cannot."""

from __future__ import annotations

import json
import logging
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import prometheus_client
import pytest
import yaml

from tests.docs.blocks import DOCS, LANGUAGES, ROOT, Block, blocks_of, code_lines, literal_blocks, page_name, pages
from tests.docs.commands import commands_in, mistakes, pattern_of, transcript_of
from tests.docs.running import GIVEN, PATIENCE, BlockError, Page, home
from tests.support.processes import result_here

BLOCKS = [block for path in pages() for block in blocks_of(path)]
PYTHON = [path for path in pages() if any(block.language in ("python", "pycon") for block in blocks_of(path))]
SHOWN = [block for block in BLOCKS if block.language in ("console", "sh")]
READERS: dict[str, Callable[[str], object]] = {
    "json": json.loads,
    "toml": tomllib.loads,
    "yaml": lambda text: list(yaml.safe_load_all(text)),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with home(tmp_path, monkeypatch):
        yield tmp_path


@pytest.mark.parametrize("path", PYTHON, ids=page_name)
def test_the_python_blocks_of_a_page_run(path: Path, folder: Path) -> None:
    Page(path, blocks_of(path), folder).run()


def test_blocks_have_a_language_that_is_checked() -> None:
    assert [f"{block.place}: {block.language}" for block in BLOCKS if block.language not in LANGUAGES] == []


def test_python_is_in_blocks_that_say_so() -> None:
    code = re.compile(
        r"^(async|await|class|def|except|for|from|import|try|with) .*|^@?\w+ = |^\w+(\.\w+)*\(", re.MULTILINE
    )
    hidden = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in pages()
        for line, text in literal_blocks(path)
        if code.search(text)
    ]
    directives = re.compile(r"^ *\.\. (code|sourcecode|highlight|doctest|testcode)::", re.MULTILINE)
    hidden += [str(path.relative_to(ROOT)) for path in pages() if directives.search(path.read_text())]
    assert hidden == []


def test_code_fits_into_the_width_of_a_page() -> None:
    """Data and what programs print may be wider; ruff measures included programs, see examples/ruff.toml."""
    paths = [*DOCS.glob("*.rst"), *(DOCS / "howto").glob("*.rst"), *(DOCS / "tutorial").glob("*.rst")]
    paths += [ROOT / "README.md", ROOT / "examples" / "README.md"]
    blocks = [block for path in paths for block in blocks_of(path) if block.included is None]
    wide = [f"{block.place}: {line}" for block in blocks for line in code_lines(block) if len(line) > 88]
    assert wide == []


def test_files_that_pages_include_exist() -> None:
    assert [block.place for block in BLOCKS if block.included and not block.included.exists()] == []


@pytest.mark.parametrize("language", READERS)
def test_blocks_of_data_can_be_read(language: str) -> None:
    blocks = [block for block in BLOCKS if block.language == language]
    assert blocks
    for block in blocks:
        READERS[language](block.text)


def test_the_programs_in_commands_exist_and_have_their_flags() -> None:
    found = [f"{b.place}: {mistake}" for b in SHOWN for command in commands_in(b) for mistake in mistakes(command)]
    assert found == []


@pytest.mark.parametrize("block", [block for block in SHOWN if transcript_of(block)], ids=lambda block: block.place)
def test_an_example_prints_what_a_page_shows(block: Block, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transcript = transcript_of(block)
    assert transcript is not None
    variables, (program, *arguments), output = transcript
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    _, printed, errors = result_here(str(ROOT / program), *arguments, is_virtual=True, interrupt_after=PATIENCE)
    # Errors name the file in the reader's home.
    text = "".join(f"{line}\n" for line in errors + printed).replace(str(folder), "/home/me")
    assert pattern_of(output).search(text), text


def test_fewer_than_one_block_in_twenty_is_not_run() -> None:
    reasons = {block.place: block.not_run for block in BLOCKS if block.not_run}
    assert len(reasons) * 20 < len(BLOCKS)


def test_links_to_other_sites_are_encrypted_and_complete() -> None:
    link = re.compile(r"(?:<|\]\(|^\.\. _.*?: )(https?:[^\s>)]*)", re.MULTILINE)
    links = [url for path in pages() for url in link.findall(re.sub(r"``.*?``", "", path.read_text()))]
    assert links
    assert [url for url in links if not re.fullmatch(r"https://[\w.-]+\.[a-z]{2,}([/#][\w./#%~=?&+-]*)?", url)] == []


def test_what_is_given_to_a_page_belongs_to_a_page_with_blocks() -> None:
    names = {path.relative_to(GIVEN).with_suffix("").as_posix() for path in GIVEN.rglob("*.py")}
    assert names - {page_name(path) for path in PYTHON} == set()


def page_of(folder: Path, *texts: str, raises: str = "") -> Page:
    """A page with blocks of Python; their file does not exist."""
    path = DOCS / "none.rst"
    return Page(
        path, [Block(path, 10 * n, "python", text, said={"raises": raises}) for n, text in enumerate(texts, 1)], folder
    )


SYNC = """
import trio
from trioformer import SharedInformerFactory
from trioformer.models.core_v1 import Pod

factory = SharedInformerFactory(client)
informer = factory.informer(Pod)
async with trio.open_nursery() as nursery:
    await nursery.start(factory.run)
"""


def test_a_block_that_does_not_end_goes_on_beside_the_next(folder: Path) -> None:
    read = "assert [pod.name for pod in informer.lister.list(label_selector='app=web')] == ['web-0', 'web-1']"
    page_of(folder, SYNC, read, "await trio.sleep(1e6)", read).run()


def test_a_program_runs_with_a_server_of_its_own_and_is_ended(folder: Path) -> None:
    program = """
import sys, trio
from trioformer import open_client, run
from trioformer.models.core_v1 import Pod

names = []

async def main() -> None:
    async with open_client(context="prod") as client:
        names.extend(pod.name for pod in await client.api(Pod, namespace="default").list())
        await trio.sleep_forever()

if __name__ == "__main__":
    sys.exit(run(main))
"""
    page_of(folder, program, "assert names == ['db-0', 'web-0', 'web-1']").run()


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["async def main(): print(unknown)"], "docs/none.rst:10: name 'unknown' is not defined"),
        (["import trio", "trio.open_nursry()"], "module 'trio' has no attribute 'open_nursry'"),
        (["async def test_it(api_server, client): raise ValueError('in a test')"], "in a test"),
        (
            [
                SYNC,
                "from trioformer import ResourceEventHandler as H\ninformer.add_event_handler(H(), resync_period=9)",
            ],
            "no resync, because its informer has no resync period",
        ),
        (["import trioformer", "async with trioformer.open_client(timeout=1): ..."], "timeout"),
        (
            ['import sys\nasync def main(): raise SystemExit(3)\nif __name__ == "__main__": sys.exit(3)'],
            "docs/none.rst:10: the program has ended with exit code 3",
        ),
    ],
)
def test_a_block_with_a_mistake_is_found(folder: Path, texts: list[str], message: str) -> None:
    with pytest.raises((BlockError, AttributeError, TypeError, ValueError), match=re.escape(message)):
        page_of(folder, *texts).run()


def test_a_block_that_shows_an_error_must_raise_it(folder: Path) -> None:
    page_of(folder, "{}['key']", raises="KeyError").run()
    with pytest.raises(BlockError, match=r"none\.rst:10: should raise LookupError, but: nothing"):
        page_of(folder, "[].copy()", raises="LookupError").run()


def test_blocks_outside_of_trio_run_too(folder: Path) -> None:
    reads = "with sync.open_client() as client: assert len(client.api(Pod, namespace='default').list()) == 3"
    texts = {
        "asyncio": "async with aio.open_cache(Pod) as pods: await pods.wait_until_synced(); assert len(pods) == 3",
        "a thread": f"from trioformer import sync\n{reads}",
    }
    path = DOCS / "none.rst"
    imports = Block(path, 1, "python", "from trioformer import aio\nfrom trioformer.models.core_v1 import Pod")
    blocks = [Block(path, 9, "python", text, said={"runs in": way}) for way, text in texts.items()]
    Page(path, [imports, *blocks], folder).run()
    blocks[0] = Block(path, 9, "python", "await missing()", said={"runs in": "asyncio"})
    with pytest.raises(NameError, match="missing"):
        Page(path, [imports, *blocks], folder).run()


@pytest.mark.parametrize("name", ["howto/controllers", "howto/logging", "howto/metrics"])
def test_a_page_leaves_logging_and_metrics_as_they_were(name: str, folder: Path) -> None:
    path = next(path for path in PYTHON if page_name(path) == name)
    collectors = list(prometheus_client.REGISTRY.collect())
    before = logging.root.level, logging.root.handlers[:], logging.getLogger("trioformer.cache").level
    Page(path, blocks_of(path), folder).run()
    assert (logging.root.level, logging.root.handlers, logging.getLogger("trioformer.cache").level) == before
    assert len(list(prometheus_client.REGISTRY.collect())) == len(collectors)
