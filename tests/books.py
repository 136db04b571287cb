"""Random books, and what their authors do to them: the same seed gives the same book and the same history."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

WORDS = (
    "robot sensor node topic service action frame camera lidar motor torque gripper planner map odometry filter noise "
    "latency message publisher subscriber launch parameter world physics joint link inertia policy reward grasp"
).split()


class Author:
    """Writes a small book and goes on editing it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self._random = random.Random(seed)
        folder.mkdir(parents=True, exist_ok=True)
        for chapter in (1, 2):
            self._write(Path(f"mod-a/chapter-{chapter}-x/README.md"), f"# Chapter {chapter}\n\n{self._prose()}\n")
            for lesson in (1, 2):
                self._write(Path(f"mod-a/chapter-{chapter}-x/0{lesson}-lesson.md"), self._lesson())
        self._write(Path("mod-b/01-other.md"), self._lesson())

    def edit(self) -> str:
        """Do one thing that authors do; says what."""
        deeds: list[Callable[[], None]] = [
            self._add,
            self._change_a_line,
            self._change_a_line,
            self._change_a_line,
            self._rename,
            self._move,
            self._delete,
            self._swap,
            self._retitle,
            self._insert_sibling,
            self._copy,
            self._break,
            self._manifest,
            self._front_matter,
            self._touch_nothing,
        ]
        deed = self._random.choice(deeds)
        deed()
        if not self._lessons():
            self._add()
        return deed.__name__

    def _lessons(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*.md"))

    def _pick(self) -> Path:
        return self._random.choice(self._lessons())

    def _prose(self) -> str:
        size = self._random.randint(4, 14)
        return " ".join(self._random.choice(WORDS) for _ in range(size)).capitalize() + "."

    def _lesson(self) -> str:
        title = self._random.choice(WORDS).capitalize()
        parts = [f"# {title}", self._prose()]
        for _ in range(self._random.randint(1, 3)):
            parts += [f"## {self._random.choice(WORDS).capitalize()}", " ".join(self._prose() for _ in range(20))]
            if self._random.random() < 0.3:
                parts.append(f"```python\n# {self._prose()}\nprint({self._random.randint(0, 9)})\n```")
        if self._random.random() < 0.2:
            parts.append(parts[1])  # a text that occurs twice
        return "\n\n".join(parts) + "\n"

    def _write(self, name: Path, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def _add(self) -> None:
        number = self._random.randint(1, 12)
        module = self._random.choice(["mod-a/chapter-1-x", "mod-a/chapter-2-x", "mod-b", "mod-c/chapter-9-y"])
        self._write(Path(module) / f"{number:02}-{self._random.choice(WORDS)}.md", self._lesson())

    def _change_a_line(self) -> None:
        path = self._pick()
        lines = path.read_bytes().decode("utf-8", "ignore").replace("\0", "").split("\n")
        lines[self._random.randrange(len(lines))] = self._prose()
        path.write_text("\n".join(lines), encoding="utf-8")

    def _rename(self) -> None:
        path = self._pick()
        path.rename(path.with_name(f"{self._random.randint(1, 12):02}-{self._random.choice(WORDS)}-renamed.md"))

    def _move(self) -> None:
        path = self._pick()
        target = self.folder / self._random.choice(["mod-a/chapter-2-x", "mod-b", "mod-c/chapter-9-y"]) / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(path, target)

    def _delete(self) -> None:
        self._pick().unlink()

    def _swap(self) -> None:
        first_file, second_file = self._pick(), self._pick()
        first, second = first_file.read_bytes(), second_file.read_bytes()
        first_file.write_bytes(second)
        second_file.write_bytes(first)

    def _retitle(self) -> None:
        self._write(Path("mod-a/chapter-1-x/README.md"), f"# {self._prose()}\n\n{self._prose()}\n")

    def _insert_sibling(self) -> None:
        self._write(Path(f"mod-b/{self._random.choice(WORDS)}.md"), self._lesson())  # unnumbered: shifts the others

    def _copy(self) -> None:
        path = self._pick()
        shutil.copy(path, path.with_name(f"{path.stem}-copy.md"))

    def _break(self) -> None:
        self._pick().write_bytes(b"# Broken\n\n\0 nul \0\n")

    def _manifest(self) -> None:
        base = self._random.choice(["", 'base_url = "https://example.org/x"\n'])
        site = self._random.choice(["docusaurus", "mkdocs", "mdbook", "plain"])
        tier = self._random.randint(1, 4)
        language = self._random.choice(["en", "en", "de"])
        head = f'language = "{language}"\ntitle = "{self._prose()}"\nsite = "{site}"\n'
        text = f"{head}{base}\n[defaults]\nhardware_tier = {tier}\n"
        self._write(Path("lectern.toml"), text)

    def _front_matter(self) -> None:
        path = self._pick()
        body = path.read_bytes().decode("utf-8", "ignore").replace("\0", "")
        chapter, layer = self._random.randint(1, 4), self._random.randint(1, 4)
        head = f"---\ntitle: {self._prose()}\nchapter: {chapter}\nlayer: L{layer}\n---\n"
        path.write_text(head + body, encoding="utf-8")

    def _touch_nothing(self) -> None:
        pass
