"""What a page includes is read where the site shows it, from inside the repository only, and lines stay true."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

import pytest

from lectern.domain.books import Survey
from lectern.domain.chunks import Chunk
from lectern.reading import includes
from lectern.reading.chunking import ReadingRules
from lectern.reading.lessons import FileChanged, read_lesson
from lectern.reading.survey import survey
from tests.unit.reading.folders import BODY, lessons_by_file, write

CODE = """fn zero() {}
// ANCHOR: here
fn one() {}
// ANCHOR: deep
fn two() {}
// ANCHOR_END: deep
// ANCHOR_END: here
fn last() {}
"""
MDBOOK = {"book.toml": "[book]\ntitle = 'B'", "src/SUMMARY.md": "# Summary\n\n- [A](a.md)\n"}
MKDOCS = {
    "mkdocs.yml": "site_name: B\nmarkdown_extensions:\n  - pymdownx.snippets\n  - mdx_include:\n      base_path: docs\n"
}


def texts(root: Path, book_survey: Survey, file: str) -> list[Chunk]:
    """The chunks of one lesson."""
    lesson = lessons_by_file(book_survey)[file]
    return list(read_lesson(root, lesson, book_survey.manifest).chunks)


def shown(root: Path, files: dict[str, str | bytes], file: str) -> tuple[str, Survey]:
    """A lesson's text as it is indexed, and the survey."""
    book_survey = survey(write(root, files))
    return "\n".join(chunk.text for chunk in texts(root, book_survey, file)), book_survey


@pytest.mark.parametrize(
    ("directive", "lines"),
    [
        ("{{#include ../code/x.rs:1}}", ["fn zero() {}"]),
        ("{{#include ../code/x.rs:1:1}}", ["fn zero() {}"]),
        ("{{#include ../code/x.rs:8:}}", ["fn last() {}"]),
        ("{{#include ../code/x.rs::1}}", ["fn zero() {}"]),
        ("{{#include ../code/x.rs:here}}", ["fn one() {}", "fn two() {}"]),
        ("{{#rustdoc_include ../code/x.rs:deep}}", ["fn two() {}"]),
        ("{{ #include ../code/x.rs:deep }}", ["fn two() {}"]),
        (r"\{{#include ../code/x.rs:deep}}", ["{{#include ../code/x.rs:deep}}"]),
    ],
)
def test_mdbook_includes_lines_and_anchors(tmp_path: Path, directive: str, lines: list[str]) -> None:
    """Ranges and anchors show their lines without the marks; an escaped directive shows itself."""
    page = f"# A\n\nSome words before it.\n\n```rust\n{directive}\n```\n\nSome words after it.\n"
    text, book_survey = shown(tmp_path, {**MDBOOK, "code/x.rs": CODE, "src/a.md": page}, "src/a.md")

    assert "```rust\n" + "\n".join(lines) + "\n```" in text
    assert book_survey.problems == ()


def test_mdbook_hides_what_its_pages_hide(tmp_path: Path) -> None:
    """Lines that begin with `# ` in Rust listings are for the compiler; attributes and `##` are shown."""
    code = "# use std::io;\n#[derive(Debug)]\nstruct A;\n#\n## not hidden\n# fn main() {}\n"
    page = "# A\n\n```rust,ignore\n{{#rustdoc_include x.rs}}\n```\n\n```console\n# a shell's sign\n```\n"
    text, _ = shown(tmp_path, {**MDBOOK, "src/x.rs": code, "src/a.md": page}, "src/a.md")

    assert "```rust,ignore\n#[derive(Debug)]\nstruct A;\n# not hidden\n```" in text
    assert "# a shell's sign" in text
    assert "std::io" not in text


def test_a_playground_is_a_listing(tmp_path: Path) -> None:
    """The fence of a playground is written by mdBook itself."""
    files = {**MDBOOK, "src/x.rs": "fn main() {}\n", "src/a.md": "# A\n\nTry it.\n\n{{#playground x.rs editable}}\n"}
    text, _ = shown(tmp_path, files, "src/a.md")

    assert "```rust,editable\nfn main() {}\n```" in text


@pytest.mark.parametrize(
    ("directive", "expected"),
    [
        ('--8<-- "code/x.py"', "one = 1\ntwo = 2\nthree = 3"),
        ("--8<-- 'code/x.py:2'", "two = 2"),
        ('--8<-- "code/x.py:1:2"', "one = 1\ntwo = 2"),
        ('-8<- "code/x.py:1:1,3:3"', "one = 1\nthree = 3"),
        ('--8<-- "code/x.py:middle"', "two = 2"),
        ("--8<--\ncode/x.py:1:1\n; code/none.py\n\ncode/x.py:middle\n--8<--", "one = 1\ntwo = 2"),
        (';--8<-- "code/x.py"', '--8<-- "code/x.py"'),
        ("{! ../code/x.py !}", "one = 1\n# --8<-- [start:middle]\ntwo = 2\n# --8<-- [end:middle]\nthree = 3"),
        ("{!> ../code/x.py[ln:3-3,1]!}", "two = 2\none = 1"),
        (r"\{! ../code/x.py !}", "{! ../code/x.py !}"),
    ],
)
def test_mkdocs_snippets(tmp_path: Path, directive: str, expected: str) -> None:
    """Snippets by line, section and list, and those of mdx_include, from the folders that the configuration names."""
    code = "one = 1\n# --8<-- [start:middle]\ntwo = 2\n# --8<-- [end:middle]\nthree = 3\n"
    if ":" in directive and "middle" not in directive and "8<" in directive and ";" not in directive:
        code = "one = 1\ntwo = 2\nthree = 3\n"
    page = f"# A\n\nSome words before it.\n\n```py\n{directive}\n```\n"
    text, book_survey = shown(tmp_path, {**MKDOCS, "code/x.py": code, "docs/a.md": page}, "docs/a.md")

    assert f"```py\n{expected}\n```" in text
    assert book_survey.problems == ()


def test_listings_with_options(tmp_path: Path) -> None:
    """`{* file ln[2:3] hl[2] title["app.py"] *}` is a listing with its language and title."""
    page = '# A\n\nLook:\n\n{* ../code/x.py ln[2:3] hl[2] title["app.py"] *}\n\nThat was it.\n'
    files = {**MKDOCS, "code/x.py": "one\ntwo\nthree\nfour\n", "docs/a.md": page}
    text, book_survey = shown(tmp_path, files, "docs/a.md")

    assert '```python title="app.py"\ntwo\nthree\n```' in text
    assert "That was it." in text
    assert (book_survey.includes, book_survey.includes_failed) == (1, 0)


def test_directives_of_another_site_are_text(tmp_path: Path) -> None:
    """A MkDocs page that explains mdBook shows its directives, and a site without the extension has no snippets."""
    page = '# A\n\n```md\n{{#include x.rs}}\n--8<-- "x.rs"\n```\n'
    text, book_survey = shown(tmp_path, {"mkdocs.yml": "site_name: B", "docs/a.md": page}, "docs/a.md")

    assert '{{#include x.rs}}\n--8<-- "x.rs"' in text
    assert book_survey.problems == ()


def test_docusaurus_raw_imports_and_literals_are_listings(tmp_path: Path) -> None:
    """A file that is imported as text, and a template literal, are code: nothing in them is a tag."""
    page = """import CodeBlock from '@theme/CodeBlock';
import Source from '!!raw-loader!@site/src/button.jsx';

# A

Some words before it.

<CodeBlock language="jsx" title="button.jsx">{Source}</CodeBlock>

<Tabs><TabItem value="a">
<CodeBlock className="language-html">
{`<div class="x">
  \\`tick\\` \\${sum} <b>bold</b>
</div>`}
</CodeBlock>
</TabItem></Tabs>

```mdx-code-block
<CodeBlock>{`plain words`}</CodeBlock>
```

```jsx
<CodeBlock>{`shown as it is`}</CodeBlock>
```
"""
    files = {"docusaurus.config.js": "", "src/button.jsx": "const x = <b>1</b>;\n", "docs/a.mdx": page}
    text, book_survey = shown(tmp_path, files, "docs/a.mdx")

    assert '```jsx title="button.jsx"\nconst x = <b>1</b>;\n```' in text
    assert '```html\n<div class="x">\n  `tick` ${sum} <b>bold</b>\n</div>\n```' in text
    assert "```\nplain words\n```" in text
    assert "<CodeBlock>{`shown as it is`}</CodeBlock>" in text
    assert "mdx-code-block" not in text
    assert book_survey.problems == ()


@pytest.mark.parametrize("path", ["/docs/parts/_setup.mdx", "@site/docs/parts/_setup.mdx", "./parts/_setup.mdx"])
def test_docusaurus_partials_by_every_kind_of_path(tmp_path: Path, path: str) -> None:
    """A partial is shown whether its path begins at the page, at `@site/`, or with a slash, which is the site's folder
    and not that of the machine. It is no lesson itself."""
    page = f"import Setup from '{path}';\n\n# A\n\nSome words before it.\n\n<Setup />\n"
    partial = "Plug the cable into the left socket.\n"
    files = {"website/docusaurus.config.js": "", "website/docs/parts/_setup.mdx": partial, "website/docs/a.mdx": page}
    text, book_survey = shown(tmp_path, files, "website/docs/a.mdx")

    assert "Plug the cable into the left socket." in text
    assert (book_survey.includes, book_survey.includes_failed) == (1, 0)
    assert book_survey.files_left_out == ("website/docs/parts/_setup.mdx",)


def test_lines_are_true_to_both_files(tmp_path: Path) -> None:
    """A chunk's lines are those of the page; its included part names the file and the lines there."""
    page = "---\ntitle: A\n---\n# A\n\nWords before.\n\n```rust\n{{#include ../code/x.rs:here}}\n```\n\nWords after.\n"
    write(tmp_path, {**MDBOOK, "code/x.rs": CODE, "src/a.md": page})
    [chunk] = texts(tmp_path, survey(tmp_path), "src/a.md")

    assert (chunk.line_start, chunk.line_end) == (4, 12)
    parts = [(chunk.text[part.at : part.end], part.file, part.line_start, part.line_end) for part in chunk.included]
    assert parts == [("fn one() {}", "code/x.rs", 3, 3), ("fn two() {}", "code/x.rs", 5, 5)]


def test_an_edit_of_an_included_file_is_noticed(tmp_path: Path) -> None:
    """The lesson's digest changes with what it includes, also when a missing file appears; and a file that changes
    between survey and reading is surveyed again."""
    page = "# A\n\nWords.\n\n{{#include x.md}}\n\n{{#include y.md}}\n"
    write(tmp_path, {**MDBOOK, "src/x.md": "First words.", "src/a.md": page, "src/other.md": "No page."})
    before = survey(tmp_path)
    write(tmp_path, {"src/other.md": "Still no page."})
    same = survey(tmp_path)
    write(tmp_path, {"src/y.md": "Second words."})
    after = survey(tmp_path)

    digests = [book_survey.lessons[0].digest for book_survey in (before, same, after)]
    assert digests[0] == digests[1] != digests[2]
    assert [len(book_survey.problems) for book_survey in (before, after)] == [2, 1]
    with pytest.raises(FileChanged):
        read_lesson(tmp_path, before.lessons[0], before.manifest)


def test_an_include_that_cannot_be_followed_is_a_warning(tmp_path: Path) -> None:
    """It names the page and the line, says why and how to mend it, and the directive is not indexed."""
    page = """---
title: A
---
# A

Words that stay.

{{#include none.md}}
{{#include x.rs:nowhere}}
{{#include x.rs:100:120}}
{{#include https://example.org/x.md}}
{{#include ../.env}}
{{#include ../../../../../../etc/passwd}}
{{#include a.md}}
{{#include nul.bin}}
"""
    files = {**MDBOOK, ".env": "KEY=secret", "src/x.rs": "one\n", "src/nul.bin": b"a\0b", "src/a.md": page}
    text, book_survey = shown(tmp_path / "repo", {**files, ".git/config": ""}, "src/a.md")

    warnings = [(problem.line, problem.message) for problem in book_survey.problems]
    reasons = ["no such file", "nowhere", "1 lines", "not fetched", "hidden", "outside", "itself", "NUL"]
    assert [line for line, _ in warnings] == list(range(8, 16))
    assert all(why in message for why, (_, message) in zip(reasons, warnings, strict=True))
    assert all("cannot be included" in message and ";" in message for _, message in warnings)
    assert (book_survey.includes, book_survey.includes_failed) == (0, 8)
    assert text == "# A\n\nWords that stay."


def test_nothing_outside_the_repository_is_read(tmp_path: Path) -> None:
    """Not by `..`, not by a link, and not above the folder that the operator listed for callers."""
    page = "# A\n\nWords.\n\n{{#include ../../secret.md}}\n{{#include link.md}}\n{{#include ../fine.md}}\n"
    root = write(tmp_path / "repo", {**MDBOOK, "src/a.md": page, "fine.md": "Fine words.", ".git/config": ""})
    (tmp_path / "secret.md").write_text("A secret.")
    (root / "src" / "link.md").symlink_to(tmp_path / "secret.md")
    text, book_survey = shown(root, {}, "src/a.md")
    limited = survey(root / "src", rules=ReadingRules(include_limits=(str(root / "src"),)))

    assert "Fine words." in text
    assert "secret" not in text
    assert book_survey.includes_failed == 2
    assert limited.includes == 0


def test_without_a_repository_the_site_is_the_border(tmp_path: Path) -> None:
    """The folder of the configuration, and without one the book's own folder."""
    page = "# A\n\nWords.\n\n{{#include ../beside.md}}\n{{#include ../../above.md}}\n"
    write(tmp_path, {"above.md": "Above.", "site/beside.md": "Beside."})
    write(tmp_path / "site", {**MDBOOK, "src/a.md": page})

    assert survey(tmp_path / "site" / "src").includes == 1
    assert includes.repository_of(tmp_path / "site", None) == (tmp_path / "site").resolve()


def test_circles_depth_number_and_size_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that includes without end is read as far as the limits allow, and a warning says so."""
    monkeypatch.setattr(includes, "MAX_INCLUDES", 40)
    monkeypatch.setattr(includes, "MAX_INCLUDED_BYTES", 1000)
    circle = {"src/b.md": "b {{#include c.md}}", "src/c.md": "c {{#include b.md}}"}
    deep = {f"src/d{depth}.md": f"d{depth} {{{{#include d{depth + 1}.md}}}}" for depth in range(20)}
    wide = {"src/w.md": "{{#include e.md}}\n" * 10, "src/e.md": "{{#include f.md}}\n" * 10, "src/f.md": "word\n"}
    page = "# A\n\n{{#include b.md}}\n\n{{#include d0.md}}\n\n{{#include w.md}}\n\n{{#include big.md}}\n"
    files = {**MDBOOK, **circle, **deep, **wide, "src/big.md": "x " * 600, "src/a.md": page}
    text, book_survey = shown(tmp_path, files, "src/a.md")
    messages = " ".join(problem.message for problem in book_survey.problems)

    assert all(why in messages for why in ("includes itself", "levels deep", "can include 40 files"))
    assert text.count("word") < 40
    assert len(book_survey.problems) < 10


def test_an_include_cannot_make_a_page_too_large(tmp_path: Path) -> None:
    """What would pass the limits of a lesson is refused; the page itself is read."""
    rules = ReadingRules(max_file_bytes=300)
    page = "# A\n\nWords that stay.\n\n{{#include x.md}}\n{{#include x.md}}\n{{#include x.md}}\n"
    write(tmp_path, {**MDBOOK, "src/x.md": "many words here " * 10, "src/a.md": page})
    book_survey = survey(tmp_path, rules=rules)

    assert (book_survey.includes, book_survey.includes_failed) == (1, 2)
    assert "larger than a lesson may be" in book_survey.problems[-1].message


def test_ranges_that_overlap_are_counted_before_they_are_copied(tmp_path: Path) -> None:
    """Fifty times all lines of a file are refused without a list of a million lines."""
    page = "# A\n\nWords that stay.\n\n{{#include x.txt:" + ",".join(["1:"] * 50) + "}}\n"
    write(tmp_path, {**MDBOOK, "src/x.txt": "x\n" * 20_000, "src/a.md": page})
    tracemalloc.start()
    try:
        book_survey = survey(tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert "larger than a lesson may be" in book_survey.problems[-1].message
    assert peak < 30 * 1024 * 1024  # bytes; the copies take 90 MiB


@pytest.mark.parametrize(
    "text",
    [
        "{{#include " * 20_000,
        "{{" * 60_000,
        "{! " * 60_000,
        "{!" + " " * 120_000,
        "{* x" + " " * 120_000,
        "--8<--\n" * 20_000,
        "<CodeBlock>{`" * 10_000,
        "<CodeBlock>{X}" * 10_000,
        "![[" * 50_000,
        "{{ a }} ` " * 15_000,
        "{% for x %}" * 15_000,
        "::: a.b\n\n" * 15_000,
        "import A from './a.mdx'\n<A " * 5_000,
    ],
    ids=lambda text: text[:12].strip(),
)
def test_hostile_pages_take_linear_time(tmp_path: Path, text: str) -> None:
    """Openings without end are looked at once; twice the text takes about twice the time."""
    mkdocs = {"mkdocs.yml": "INHERIT: x.yml\nsite_name: B"}
    for site in ({"book.toml": "[book]\nsrc = 'docs'\n[preprocessor.x]"}, mkdocs, {"docusaurus.config.js": ""}, {}):
        root = tmp_path / str(len(site)) / next(iter(site), "plain")
        start = time.process_time()
        survey(write(root, {**site, "docs/a.mdx": f"# A\n\n{BODY}\n{text}"}))
        assert time.process_time() - start < 5


def test_an_embedded_note_is_shown_in_its_place(tmp_path: Path) -> None:
    """Obsidian shows a note, a section or a block of it; pictures have no text."""
    note = "---\ntags: x\n---\nAll of it.\n\n## Deep part\n\nOnly this. ^mark\n\n## Next\n\nNot this.\n"
    page = (
        "# A\n\n![[Some note]]\n\n![[some note#Deep part]]\n\n![[Some note#^mark]]\n\n![[map.png|300]]\n\n![[None]]\n"
    )
    text, book_survey = shown(tmp_path, {"notes/Some note.md": note, "a.md": page, ".obsidian/app.json": "{}"}, "a.md")

    assert text.count("All of it.") == 1
    assert text.count("Only this.") == 3
    assert text.count("Not this.") == 1
    assert "tags" not in text
    assert "map.png" not in text
    assert [problem.line for problem in book_survey.problems if problem.file == "a.md"] == [11]


def test_a_section_of_the_same_note_is_no_circle(tmp_path: Path) -> None:
    """A note may show its own parts again, with its name or without; a part that shows itself is a circle."""
    page = "# A\n\n![[#Deep part]]\n\n![[a#^mark]]\n\n## Deep part\n\nOnly this. ^mark\n\n## Round\n\n![[a#Round]]\n"
    text, book_survey = shown(tmp_path, {"a.md": page, ".obsidian/app.json": "{}"}, "a.md")

    assert text.count("Only this.") == 3
    assert book_survey.includes == 3
    assert [problem.message.partition(": ")[2] for problem in book_survey.problems] == [
        "it includes itself; break the circle"
    ]


def test_embeds_in_tables_and_marks_of_blocks_after_them(tmp_path: Path) -> None:
    """`|` is escaped in a table; a block's mark may follow a picture without a space."""
    note = "Before.\n\n![[map.png]]^picture\n\nAfter.\n"
    page = "# A\n\n| a | b |\n|---|---|\n| ![[map.png\\|100]] | ![[x.jpg]] |\n\n![[b#^picture]]\n\nSome words.\n"
    text, book_survey = shown(tmp_path, {"a.md": page, "b.md": note, ".obsidian/app.json": "{}"}, "a.md")

    assert (book_survey.includes, book_survey.includes_failed, book_survey.problems) == (1, 0, ())
    assert "png" not in text
    assert "picture" not in text


def test_which_note_a_name_means(tmp_path: Path) -> None:
    """A part of a path is enough. Of several notes with a name, the one beside the page, then the one nearest to the
    top; the same ones are shown when the lesson is read."""
    notes = {f"{path}.md": f"Text of {path}.\n" for path in ("x/n", "x/y/n", "z/n", "z/y/n", "v1.2")}
    page = "# A\n\n![[n]]\n\n![[y/n]]\n\n![[z/y/N.md]]\n\n![[../x/n]]\n\n![[v1.2]]\n"
    text, book_survey = shown(tmp_path, {"z/a.md": page, **notes, ".obsidian/app.json": "{}"}, "z/a.md")

    assert [line for line in text.split("\n") if line.startswith("Text")] == [
        *("Text of z/n.", "Text of x/y/n.", "Text of z/y/n.", "Text of x/n.", "Text of v1.2."),
    ]
    assert book_survey.includes_failed == 0


def test_the_documentation_of_code_is_not_read(tmp_path: Path) -> None:
    """It is made when the site is built. Its options are no text, and the report counts it. A page that has nothing
    else keeps the name."""
    page = "# A\n\nSome words.\n\n::: my.Thing\n    options:\n      members: false\n\n::: my.call\n\nMore words.\n"
    code = "# B\n\n```\n::: my.Thing\n```\n"
    files = {**MKDOCS, "docs/a.md": page, "docs/b.md": code, "docs/c.md": "::: my.long.module\n"}
    text, book_survey = shown(tmp_path, files, "docs/a.md")
    (problem,) = book_survey.problems

    assert text == "# A\n\nSome words.\n\nMore words."
    assert "::: my.Thing" in shown(tmp_path, files, "docs/b.md")[0]
    assert shown(tmp_path, files, "docs/c.md")[0] == "my.long.module"
    assert problem.message.startswith("3 parts are made when the site is built")
    assert problem.message.endswith(": docs/a.md, docs/c.md")


@pytest.mark.parametrize(
    ("config", "text", "expected"),
    [
        ("plugins: [macros]", "Version {{ version }} of {{ tool.name | upper }}.", "Version  of ."),
        ("plugins: [macros]", "{% if x %}\nWords.\n{% endif %}", "Words."),
        ("plugins: [macros]", "A.\n{% for a in b %}{% for c in a %}{{ c }}{% endfor %}\n{% endfor %}\nB.", "A.\n\nB."),
        ("plugins: [macros]", "{% raw %}{{ shown }}{% endraw %}", "{{ shown }}"),
        ("plugins: [macros]", "`{{ shown }}` and\n\n```\n{% for %}\n```", "`{{ shown }}` and\n\n```\n{% for %}\n```"),
        ("hooks: [x.py]", "Version {{ version }}, but {{ base }}/x, {% if %}", "Version , but {{ base }}/x, {% if %}"),
        ("site_name: B", "Version {{ version }}", "Version {{ version }}"),
    ],
)  # fmt: skip
def test_templates_are_not_read(tmp_path: Path, config: str, text: str, expected: str) -> None:
    """Where the site has something that fills them; in code they are shown."""
    shown_text, book_survey = shown(
        tmp_path, {"mkdocs.yml": config, "docs/a.md": f"# A lesson\n\n{text}\n"}, "docs/a.md"
    )

    assert shown_text == f"# A lesson\n\n{expected}"
    assert len(book_survey.problems) == (text != expected and "raw" not in text)


def test_names_that_preprocessors_replace_are_not_read(tmp_path: Path) -> None:
    """As `{{ tool-version }}` in an mdBook with a preprocessor."""
    page = "# A lesson\n\nVersion: {{ tool-version }}\n"
    preprocessor = {**MDBOOK, "book.toml": "[preprocessor.helper]", "src/a.md": page}

    assert shown(tmp_path, {**MDBOOK, "src/a.md": page}, "src/a.md")[0].endswith("{{ tool-version }}")
    assert shown(tmp_path, preprocessor, "src/a.md")[0] == "# A lesson\n\nVersion:"


def test_directives_of_preprocessors_are_not_read(tmp_path: Path) -> None:
    """A directive that mdBook does not know is its preprocessor's: it is no text. What it makes of a file is counted as
    made when the site is built, marks around text are not. Without a preprocessor, and in code, it stays."""
    page = "# A lesson\n\n{{#literate ./main.go}}\n\n{{#tabs }}\nWords in a tab.\n{{#endtabs }}\n\n`{{#tabs }}`\n"
    preprocessor = {**MDBOOK, "book.toml": "[preprocessor.helper]", "src/a.md": page}
    text, book_survey = shown(tmp_path, preprocessor, "src/a.md")

    assert text == "# A lesson\n\nWords in a tab.\n\n`{{#tabs }}`"
    [problem] = book_survey.problems
    assert problem.message.startswith("1 part is made when the site is built")
    assert "{{#literate ./main.go}}" in shown(tmp_path, {**MDBOOK, "src/a.md": page}, "src/a.md")[0]
