"""Stories that have failed, in files, so that they are tried first the next time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import final

import attrs

from ._story import Story


@final
@attrs.frozen
class SavedStories:
    """The failed stories of one operator and scenario."""

    _directory: Path | None
    _name: str

    def read(self) -> Iterator[tuple[Path, Story]]:
        """Yield the saved stories.  Those that this version of the library cannot read are removed."""
        for path in sorted(self._directory.glob(f"{self._name}-*.json")) if self._directory is not None else ():
            try:
                yield path, Story.from_json(path.read_text("utf-8"))
            except ValueError:
                path.unlink()

    def save(self, story: Story) -> None:
        """Save a story, unless the directory cannot be written."""
        if self._directory is not None:
            text = story.to_json()
            digest = hashlib.sha256(text.encode()).hexdigest()[:12]
            with suppress(OSError):
                self._directory.mkdir(parents=True, exist_ok=True)
                (self._directory / f"{self._name}-{digest}.json").write_text(text, "utf-8")
