"""Stories that have failed, in files, so that they are tried first the next time."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import final

import attrs

from ._scenario import Scenario
from ._story import Story


@final
@attrs.frozen
class SavedStories:
    """The failed stories of one operator and scenario."""

    _directory: Path | None
    _name: str

    def read(self, scenario: Scenario) -> Iterator[tuple[Path, Story]]:
        """Yield the saved stories.  Those that can no longer be read, or do not fit the scenario, are removed."""
        for path in sorted(self._directory.glob(f"{self._name}-*.json")) if self._directory is not None else ():
            try:
                story = Story.from_json(path.read_text("utf-8"))
                scenario.check_story(story)
            except ValueError as error:
                path.unlink()
                warnings.warn(f"{path} was removed, because it cannot be told any more: {error}", stacklevel=2)
            else:
                yield path, story

    def save(self, story: Story) -> None:
        """Save a story, unless the directory cannot be written."""
        if self._directory is not None:
            text = story.to_json()
            digest = hashlib.sha256(text.encode()).hexdigest()[:12]
            with suppress(OSError):
                self._directory.mkdir(parents=True, exist_ok=True)
                (self._directory / f"{self._name}-{digest}.json").write_text(text, "utf-8")
