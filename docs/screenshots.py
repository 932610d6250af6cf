"""Looks at the built documentation in Chromium: ``python docs/screenshots.py`` after ``nox -s docs``.

It opens every page at the width of a phone and of a desk, light and dark, and reports

- what is wider than the page, and cannot be scrolled by itself
- images that are missing, and what scripts report as errors
- text that has too little contrast with its background (WCAG 2 asks for 4.5 to 1)
- words that the search should find, and does not.

The exit code is 1 if there is anything to report.
``--shots DIRECTORY`` also writes pictures, of all pages or of those that are named on the command line.

Nothing else needs Chromium: neither the build nor a test.  It is controlled by the DevTools protocol over two pipes.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import functools
import http.server
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

DOCS = Path(__file__).resolve().parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTHS = {"phone": (390, 844), "desk": (1280, 900)}
SCHEMES = ("light", "dark")
TALLEST = 6000
"""A picture ends here; the pages of the models are longer than a picture may be."""
SEARCHES = ("leader election", "informer", "Ctrl-C", "open_client", "quarantine")

# Returns a list of sentences.  What a page scrolls by itself (a table, a block of code, a drawing) may be wider.
OVERFLOW = """(() => {
  const width = document.documentElement.clientWidth, found = [];
  const scrolls = (element) => {
    for (let each = element.parentElement; each; each = each.parentElement) {
      const style = getComputedStyle(each);
      if (['auto', 'scroll'].includes(style.overflowX) && each !== document.body
          && each !== document.documentElement && each.getBoundingClientRect().right <= width + 1) return true;
      if (style.position === 'fixed') return true;
    }
    return false;
  };
  if (document.documentElement.scrollWidth > width + 1)
    found.push(`the page is ${document.documentElement.scrollWidth} wide, the window ${width}`);
  for (const element of document.querySelectorAll('.content *, footer *')) {
    const box = element.getBoundingClientRect();
    if (box.width > 0 && (box.right > width + 1 || box.left < -1) && !scrolls(element)
        && getComputedStyle(element).position !== 'fixed')
      found.push(`<${element.tagName.toLowerCase()} class="${element.getAttribute('class') || ''}"> ends at `
                 + `${Math.round(box.right)}: ${(element.textContent || '').trim().slice(0, 50)}`);
  }
  for (const text of document.querySelectorAll('.drawing svg text')) {
    const box = text.getBBox(), whole = text.ownerSVGElement.viewBox.baseVal;
    if (box.x < 0 || box.x + box.width > whole.width || box.y + box.height > whole.height)
      found.push(`a drawing cuts off: ${text.textContent}`);
  }
  for (const image of document.images)
    if (!image.naturalWidth) found.push(`the image ${image.getAttribute('src')} is missing`);
  return found.slice(0, 5);
})()"""

CONTRAST = """(() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const cache = new Map();
  const rgba = (text) => {
    if (!cache.has(text)) {
      canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      cache.set(text, [r, g, b, a / 255]);
    }
    return cache.get(text);
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const light = (color) => {
    const [r, g, b] = color.map((value) => {
      value /= 255;
      return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const background = (element) => {
    const layers = [];
    for (let each = element; each; each = each.parentElement) {
      const color = rgba(getComputedStyle(each).backgroundColor);
      if (color[3] > 0) layers.push(color);
      if (color[3] === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const found = new Map();
  for (const element of document.querySelectorAll('article *')) {
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!hasText || element.closest('svg')) continue;
    const style = getComputedStyle(element), box = element.getBoundingClientRect();
    if (!box.width || style.visibility === 'hidden' || element.matches('.headerlink, .headerlink *')) continue;
    const behind = background(element), color = over(rgba(style.color), behind);
    const [a, b] = [light(color), light(behind)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
    const large = parseFloat(style.fontSize) >= 24;
    if (ratio < (large ? 3 : 4.5)) {
      const key = `${style.color} on ${behind.slice(0, 3).map(Math.round)}`;
      if (!found.has(key)) found.set(key, `contrast ${ratio.toFixed(1)}: ${key}, such as `
        + `<${element.tagName.toLowerCase()} class="${element.className}"> ${element.textContent.trim().slice(0, 30)}`);
    }
  }
  return [...found.values()].slice(0, 8);
})()"""

SEARCH_DONE = """new Promise((resolve) => {
  const titles = () => [...document.querySelectorAll('#search-results ul.search li a')].map((each) => each.textContent);
  const look = () => {
    const heading = document.querySelector('#search-results h2');
    if (heading && !heading.textContent.includes('Searching')) resolve(titles()); else setTimeout(look, 50);
  };
  setTimeout(() => resolve(titles()), 8000);
  look();
})"""


class Browser:
    """A tab of a headless Chromium."""

    def __init__(self, program: str, profile: str) -> None:
        read_here, write_there = os.pipe()
        read_there, write_here = os.pipe()
        command = [
            program,
            "--headless",
            "--remote-debugging-pipe",
            "--disable-gpu",
            "--disable-background-networking",
            "--hide-scrollbars",
            "--no-first-run",
            f"--user-data-dir={profile}",
            # Chromium refuses to run as root in its sandbox; what it opens here are our own pages.
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
            "about:blank",
        ]
        # The protocol is spoken over the descriptors 3 and 4.
        shell = f'exec "$@" 3<&{read_there} 4>&{write_there}'
        self._process = subprocess.Popen(
            ["sh", "-c", shell, "sh", *command],
            pass_fds=(read_there, write_there),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_there)
        os.close(write_there)
        self._reader, self._writer = os.fdopen(read_here, "rb"), os.fdopen(write_here, "wb", buffering=0)
        self._numbers = itertools.count(1)
        self._rest = b""
        self._session: str | None = None
        self.problems: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
        self._reader.close()
        self._writer.close()

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            data = self._reader.read1(1 << 20)
            if not data:
                raise SystemExit("chromium has ended")
            self._rest += data
        message, _, self._rest = self._rest.partition(b"\0")
        received: dict[str, Any] = json.loads(message)
        match received.get("method"), received.get("params", {}):
            case "Runtime.exceptionThrown", {"exceptionDetails": details}:
                self.problems.append(
                    f"a script failed: {details.get('exception', details).get('description', details)}"
                )
            case "Log.entryAdded", {"entry": {"level": "error", "text": text, **rest}}:
                self.problems.append(f"{text} {rest.get('url', '')}")
        return received

    def call(self, method: str, **params: object) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, object] = {"id": number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        self._writer.write(json.dumps(message).encode() + b"\0")
        while (received := self._receive()).get("id") != number:
            pass
        if "error" in received:
            raise RuntimeError(f"{method}: {received['error']}")
        result: dict[str, Any] = received["result"]
        return result

    def evaluate(self, script: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        while self._receive().get("method") != "Page.loadEventFired":
            pass

    def resize(self, width: int, height: int, scheme: str) -> None:
        # No "mobile": it would widen a page that overflows, and hide that.
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def shoot(self, path: Path) -> None:
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], TALLEST), "scale": 1}
        data = self.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)["data"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(data))


@contextlib.contextmanager
def served(directory: Path) -> Iterator[str]:
    """Serve the pages on this machine: the search reads them, which a browser does not allow for files."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class names it so
            """Log nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(directory)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def opened() -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        raise SystemExit(f"none of {', '.join(BROWSERS)} is installed; on Debian: apt-get install chromium")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        try:
            yield browser
        finally:
            browser.close()


def look_at_pages(browser: Browser, base: str, pages: Sequence[str], shots: Path | None) -> Iterator[str]:
    for (screen, (width, height)), scheme in itertools.product(WIDTHS.items(), SCHEMES):
        browser.resize(width, height, scheme)
        for page in pages:
            browser.open(f"{base}{page}.html")
            found = [*browser.evaluate(OVERFLOW), *browser.evaluate(CONTRAST), *browser.problems]
            browser.problems.clear()
            yield from (f"{page}, {screen}, {scheme}: {each}" for each in found)
            if shots is not None:
                browser.shoot(shots / f"{page.replace('/', '-')}.{screen}.{scheme}.png")


def look_for_words(browser: Browser, base: str, words: Sequence[str], shots: Path | None) -> Iterator[str]:
    """Search as a reader does: from the field of a page, at both widths."""
    for screen, (width, height) in WIDTHS.items():
        browser.resize(width, height, "light")
        for text in words:
            browser.open(f"{base}index.html")
            browser.evaluate(
                "(() => { const field = document.querySelector('.sidebar-search');"
                f" field.value = {json.dumps(text)}; field.form.requestSubmit(); }})()"
            )
            while browser._receive().get("method") != "Page.loadEventFired":
                pass
            where = browser.evaluate("location.pathname + location.search")
            if f"search.html?q={quote(text).replace('%20', '+')}" not in where:
                yield f"the search for {text!r}, {screen}: leads to {where}"
            hits = browser.evaluate(SEARCH_DONE)
            # Or the next page marks the words, and Sphinx's script fails if one is in the title of an icon.
            browser.evaluate("localStorage.clear()")
            print(f"search for {text!r}, {screen}: {len(hits)} results, first {'; '.join(hits[:5])}")
            found = [*browser.evaluate(OVERFLOW), *browser.problems, *([] if hits else ["found nothing"])]
            browser.problems.clear()
            yield from (f"the search for {text!r}, {screen}: {each}" for each in found)
            if shots is not None:
                browser.shoot(shots / f"search-{text.replace(' ', '-')}.{screen}.png")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pages", nargs="*", help="names such as howto/connect; all pages if none is given")
    parser.add_argument("--html", type=Path, default=DOCS / "_build" / "html", help="the built pages")
    parser.add_argument("--shots", type=Path, help="a directory for pictures")
    parser.add_argument("--search", action="append", help="words to search for; may be repeated")
    given = parser.parse_args(arguments)
    if not (given.html / "index.html").is_file():
        parser.error(f"no built documentation in {given.html}: run nox -s docs first, or give --html")
    known = sorted(
        str(path.relative_to(given.html).with_suffix(""))
        for path in given.html.rglob("*.html")
        if not path.is_relative_to(given.html / "_static") and path.stem not in ("search", "genindex", "py-modindex")
    )
    if unknown := set(given.pages) - set(known):
        parser.error(f"no such page: {', '.join(sorted(unknown))}")
    problems = 0
    with served(given.html) as base, opened() as browser:
        for problem in itertools.chain(
            look_at_pages(browser, base, given.pages or known, given.shots),
            look_for_words(browser, base, given.search or SEARCHES, given.shots),
        ):
            print(problem)
            problems += 1
    print(f"{len(given.pages or known)} pages, {problems} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
