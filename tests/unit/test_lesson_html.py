"""Lessons of Docusaurus, MkDocs and mdBook as pages."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from lectern.rendering import lessons as lessons_module
from lectern.rendering.diagrams import diagram_html, mermaid_steps
from lectern.rendering.lessons import LessonInBook, LessonPages
from tests.lesson_pages import Visible, lessons_in, page_of, page_of_text

MKDOCS = "mkdocs.yml"


def flat(html: str) -> str:
    """HTML on one line."""
    return html.replace("\n", "")


def docusaurus(folder: Path, text: str, name: str = "docs/lesson.mdx") -> str:
    """The HTML of a Docusaurus lesson."""
    return flat(page_of_text(folder, text, name=name).html)


def mkdocs(folder: Path, text: str) -> str:
    """The HTML of an MkDocs lesson."""
    return flat(page_of_text(folder, text, config=MKDOCS).html)


def test_front_matter_imports_and_comments_are_not_shown(tmp_path: Path) -> None:
    """They are left out, and the lines of what follows are still those of the file."""
    text = "---\ntitle: T\n---\n\nimport A from 'a'\n\nexport const b = 1\n\n{/* c */}\n\n<!-- d -->\n\nShown text.\n"

    assert docusaurus(tmp_path, text) == '<p data-lines="13-13">Shown text.</p>'


def test_tabs_keep_their_labels_and_their_markdown(tmp_path: Path) -> None:
    """`<Tabs>` becomes sections with labels, from `label`, from the list of values, or from `value`; inside is
    Markdown, however far it is indented."""
    text = """\
<Tabs values={[{label: 'Mac', value: 'm'}]}>
  <TabItem value="l" label="Linux">

      Run **this**:

      - one
      - two

  </TabItem>
  <TabItem value="m">short</TabItem>
</Tabs>
"""
    assert docusaurus(tmp_path, text) == (
        '<div class="tabs" data-lines="1-11"><section class="tab" data-label="Linux" data-lines="2-9">'
        '<p data-lines="4-4">Run <strong>this</strong>:</p>'
        '<ul data-lines="6-7"><li data-lines="6-6">one</li><li data-lines="7-7">two</li></ul></section>'
        '<section class="tab" data-label="Mac" data-lines="10-10"><p data-lines="10-10">short</p></section></div>'
    )


def test_directives_are_boxes_and_nest_by_their_colons(tmp_path: Path) -> None:
    """A box has its title or the name of its kind; code is never a box; a box without an end goes to the end."""
    text = "::::tip[My *tip*]\nOuter.\n\n:::note\nInner.\n:::\n\n::::\n\n```\n:::note\n```\n\n:::danger Look\nOpen.\n"
    html = docusaurus(tmp_path, text)

    assert (
        '<aside class="admonition tip" data-lines="1-8"><p class="admonition-title">My <em>tip</em></p>'
        '<p data-lines="2-2">Outer.</p><aside class="admonition note" data-lines="4-6">'
        '<p class="admonition-title">Note</p><p data-lines="5-5">Inner.</p></aside></aside>'
    ) in html
    assert "<pre><code>:::note</code></pre>" in html
    assert '<aside class="admonition danger"' in html


def test_platform_tabs_of_a_directive(tmp_path: Path) -> None:
    """`::::os-tabs` with `::name` lines becomes tabs."""
    html = docusaurus(tmp_path, "::::os-tabs\n\n::macos\nWith brew.\n\n::windows\nWith winget.\n\n::::\n\nAfter it.\n")

    assert html.count('<section class="tab"') == 2
    assert 'data-label="windows"' in html
    assert html.endswith('</section></div><p data-lines="11-11">After it.</p>')


def test_folded_parts_and_components(tmp_path: Path) -> None:
    """`<details>` folds, `<Admonition>` is a box, and an unknown component leaves its visible text."""
    text = """\
<details><summary>More **here**</summary>

Hidden text.

</details>

<Admonition type="warning" title="Hot">Do not touch.</Admonition>

<Quiz title="The quiz" questions={[{question: "Is it \\"so\\"?", options: ["yes", "no"]}]} />

<Layout><Hero>Kept text</Hero></Layout>
"""
    html = docusaurus(tmp_path, text)

    assert (
        '<details data-lines="1-5"><summary data-lines="1-1">More <strong>here</strong></summary>'
        '<p data-lines="3-3">Hidden text.</p></details>'
    ) in html
    assert '<aside class="admonition warning" data-lines="7-7"><p class="admonition-title">Hot</p>' in html
    assert all(words in html for words in ("The quiz", 'Is it "so"?', ">yes<", "Kept text"))
    assert "Quiz" not in html
    assert "Layout" not in html


def test_harmless_html_is_rendered(tmp_path: Path) -> None:
    """Keys, indices, line breaks, emphasis, links, tables and listings of HTML; what only looks like a tag stays."""
    text = (
        "Press <kbd>Ctrl</kbd>, H<sub>2</sub>O<br/><b>bold</b> <a href='https://x.example'>out</a> and "
        "`vector<int>` a <b.\n\n"
        "<table><tr><td colspan='2'>cell</td></tr></table>\n\n<pre><code>a &lt; <em>b</em>\n</code></pre>\n\n"
        "| a |\n|---|\n| <ul><li>x</li></ul> |\n"
    )
    html = docusaurus(tmp_path, text, "docs/lesson.md")

    assert "Press <kbd>Ctrl</kbd>, H<sub>2</sub>O<br><b>bold</b> <a href=" in html
    assert "<code>vector&lt;int&gt;</code> a &lt;b." in html
    assert '<td colspan="2" data-lines="3-3">cell</td>' in html
    assert "<pre><code>a &lt; b</code></pre>" in html
    assert "<ul><li>x</li></ul>" in html


def test_boxes_and_tabs_of_mkdocs(tmp_path: Path) -> None:
    """Indented content belongs to its box or tab, with listings in it; neighbouring tabs form one group."""
    text = """\
!!! note "Read *this*"
    Text.

    ```python
    x = 1
    ```

    !!! tip ""
        Nested.

??? question
    Folded.

???+ example "Shown"
    Unfolded.

=== "C"

    c text

=== "Rust"

    rust text

After it.

--8<-- "other.md"
"""
    html = mkdocs(tmp_path, text)

    assert (
        '<aside class="admonition note" data-lines="1-9"><p class="admonition-title">Read <em>this</em></p>'
        '<p data-lines="2-2">Text.</p><figure class="listing" data-language="python" data-lines="4-6">'
    ) in html
    assert '<aside class="admonition tip" data-lines="8-9"><p data-lines="9-9">Nested.</p></aside></aside>' in html
    assert '<details class="admonition question" data-lines="11-12"><summary>Question</summary>' in html
    assert '<details class="admonition example" open="" data-lines="14-15"><summary>Shown</summary>' in html
    assert html.count('<div class="tabs"') == 1
    assert (
        '<section class="tab" data-label="Rust" data-lines="21-23"><p data-lines="23-23">rust text</p></section>'
        in html
    )
    assert html.endswith('</div><p data-lines="25-25">After it.</p>')


def test_blocks_and_definitions_of_mkdocs(tmp_path: Path) -> None:
    """`///` blocks, definition lists and attribute lists; Docusaurus' colons are no sign there."""
    text = (
        "/// tip | Hey\nText.\n///\n\n//// tab | A\na\n////\n\n//// tab | B\nb\n////\n\n"
        "Term\n:   Meaning\n\n[x](https://x.example){ .button }\n\n:::tip\n"
    )
    html = mkdocs(tmp_path, text)

    assert '<p class="admonition-title">Hey</p>' in html
    assert html.count('<div class="tabs"') == 1
    assert html.count('<section class="tab"') == 2
    assert '<dt data-lines="13-13">Term</dt><dd data-lines="14-14">Meaning</dd>' in html
    assert "button" not in html
    assert ":::tip" in html


def test_callouts_tasks_and_footnotes(tmp_path: Path) -> None:
    """GitHub's callouts are boxes, boxes of tasks are drawn, and footnotes stand at the end, also those that nothing
    refers to."""
    text = "> [!WARNING]\n> Careful.\n\n- [x] done\n- [ ] open\n\nText[^a].\n\n[^a]: The note.\n[^b]: Unused note.\n"
    html = docusaurus(tmp_path, text)

    assert '<aside class="admonition warning" data-lines="1-2"><p class="admonition-title">Warning</p>' in html
    assert '<span class="task done"></span> done' in html
    assert '<sup class="footnote-ref" id="fnref1"><a href="#fn1"' in html
    assert '<section class="footnotes"><ol><li id="fn1" data-lines="9-9">' in html
    assert "Unused note." in html


def test_the_box_of_mdbook(tmp_path: Path) -> None:
    """`<div class="warning">` is a box; other divisions only end a paragraph."""
    text = '# A\n\n<div class="warning">\n\nCareful.\n\n</div>\n\n<div class="x">one</div><div>two</div>\n'
    html = flat(page_of_text(tmp_path, text, name="src/lesson.md", config="book.toml").html)

    assert '<aside class="admonition warning" data-lines="3-7"><p data-lines="5-5">Careful.</p></aside>' in html
    assert '<p data-lines="9-9">one</p><p data-lines="9-9">two</p>' in html


def test_headings_have_the_anchors_of_the_site(tmp_path: Path) -> None:
    """The second heading of a name has a number, an explicit id is taken, and the title of a Docusaurus page has no
    anchor; the list of headings says the same."""
    page = page_of_text(tmp_path, "# T\n\n## Use it\n\na\n\n## Use it\n\nb\n\n### Own {#own-id}\n\nText of it.\n")

    assert [(heading.level, heading.title, heading.anchor) for heading in page.headings] == [
        (1, "T", ""),
        (2, "Use it", "use-it"),
        (2, "Use it", "use-it-1"),
        (3, "Own", "own-id"),
    ]
    assert Visible(page.html).ids == ["use-it", "use-it-1", "own-id"]
    assert "{#" not in page.html


def write_book(folder: Path) -> list[LessonInBook]:
    """Two lessons that refer to each other and to images."""
    first = (
        "# One\n\n[two](./02-two.md#part) [by address](/two#part) [here](#one) [out](https://x.example) "
        "[gone](./no.md) [bad](javascript:x)\n\n![a](./img/a.png) ![b](/img/b.svg) ![c](../../out.png) "
        "![d](https://x.example/d.png) ![e](img/none.png) ![f](img/f.pdf)\n"
    )
    for name, text in {
        "docusaurus.config.js": "",
        "docs/01-one.md": first,
        "docs/02-two.md": "# Two\n\n## Part\n\nText of two.\n",
        "docs/img/a.png": "x",
        "static/img/b.svg": "x",
        "docs/img/f.pdf": "x",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return list(lessons_in(folder))


def test_links_lead_to_lessons_and_images_to_files(tmp_path: Path) -> None:
    """Links to files and pages of the book open lessons, links to other sites a new page, and others are text. Images
    of the book are named by their path, those of the site's static folder too; others are text or links."""
    one, two = write_book(tmp_path)
    visible = Visible(page_of(one).html)
    lesson = two.chunks[0].parent_doc_id
    inside = {link["data-anchor"]: link for link in visible.links if "data-lesson" in link}

    assert inside["part"]["data-lesson"] == lesson
    assert inside["part"]["href"] == f"?book={two.chunks[0].book_id}&lesson={lesson}#part"
    assert inside["one"]["data-lesson"] == one.chunks[0].parent_doc_id
    assert len([link for link in visible.links if link.get("data-lesson") == lesson]) == 2
    outside = [link["href"] for link in visible.links if "data-lesson" not in link]
    assert outside == ["https://x.example", "https://x.example/d.png"]
    assert all(link["rel"] == "noopener noreferrer nofollow" for link in visible.links)
    assert visible.files == ["docs/img/a.png", "static/img/b.svg"]
    assert all(word in visible.text for word in ("gone", "bad", "c", "e", "f"))


def test_a_changed_or_missing_file_is_shown_from_the_index(tmp_path: Path) -> None:
    """The indexed text is shown, with the lines and the anchors that were indexed; so it is if the folder may not be
    read."""
    one, two = write_book(tmp_path)
    (tmp_path / "docs/02-two.md").write_text("# Two\n\nOther text.\n", encoding="utf-8")
    (tmp_path / "docs/01-one.md").unlink()

    for lesson in (one, two, replace(two, folder=None)):
        assert page_of(lesson).origin == "index"
    page = page_of(two)
    assert "Text of two." in page.html
    assert Visible(page.html).ids == ["part"]
    assert Visible(page.html).lines == set(range(two.chunks[0].line_start, two.chunks[0].line_end + 1))


def test_a_link_out_of_the_folder_is_not_read(tmp_path: Path) -> None:
    """A lesson that has become a link to a file elsewhere is shown from the index, even if the bytes are equal."""
    folder = tmp_path / "book"
    one, _ = write_book(folder)
    outside = tmp_path / "outside.md"
    (folder / "docs/01-one.md").rename(outside)
    (folder / "docs/01-one.md").symlink_to(outside)

    assert page_of(one).origin == "index"


async def test_pages_are_kept_until_something_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lesson is rendered once as long as neither its file nor the book's outline changes, and at most two are
    rendered at a time."""
    lessons = write_book(tmp_path)
    rendered: list[str] = []
    render = lessons_module.render_lesson

    def counted(lesson: LessonInBook, raw: bytes | None) -> lessons_module.LessonPage:
        rendered.append("index" if raw is None else "file")
        return render(lesson, raw)

    monkeypatch.setattr(lessons_module, "render_lesson", counted)
    pages = LessonPages()
    for _ in range(3):
        await asyncio.gather(*(pages.page(lesson) for lesson in lessons))
    assert rendered == ["file", "file"]

    (tmp_path / "docs/01-one.md").write_text("changed", encoding="utf-8")
    assert (await pages.page(lessons[0])).origin == "index"
    await pages.page(replace(lessons[1], outline=replace(lessons[1].outline, modules=())))
    assert rendered == ["file", "file", "index", "file"]


async def test_a_kept_page_is_rendered_again_when_its_images_change(tmp_path: Path) -> None:
    """An image that came later is shown, and one that is gone is not; so it is with the kind of site."""
    lessons = write_book(tmp_path)
    pages = LessonPages()
    assert Visible((await pages.page(lessons[0])).html).files == ["docs/img/a.png", "static/img/b.svg"]

    (tmp_path / "docs/img/none.png").write_text("x", encoding="utf-8")
    (tmp_path / "static/img/b.svg").unlink()
    assert Visible((await pages.page(lessons[0])).html).files == ["docs/img/a.png", "docs/img/none.png"]

    plain = replace(lessons[0], manifest=replace(lessons[0].manifest, site="plain"))
    assert (await pages.page(plain)) is not await pages.page(lessons[0])


def test_an_image_with_a_very_long_name_costs_no_markdown(tmp_path: Path) -> None:
    """Such a name is longer than a file system takes; its description is shown."""
    page = page_of_text(tmp_path, f"# T\n\nSome *text* and ![words]({'a' * 400}.png) here.\n")

    assert "Some <em>text</em> and words here." in page.html


@pytest.mark.parametrize(
    ("config", "directive"),
    [("book.toml", "{{#include part.md}}"), (MKDOCS, '--8<-- "part.md"')],
)
def test_what_a_lesson_includes_is_shown(tmp_path: Path, config: str, directive: str) -> None:
    """The page has the text of the included file in the place of the directive, with the anchors of the chunks."""
    text = f"# T\n\nBefore it.\n\n{directive}\n\n## Use it\n\nAfter it.\n"
    for name, content in {
        config: "markdown_extensions: [pymdownx.snippets]\n" if config == MKDOCS else "",
        "src/lesson.md": text,
        "src/part.md": "## Use it\n\nIncluded *text*.\n",
        "part.md": "## Use it\n\nIncluded *text*.\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    [lesson] = [lesson for lesson in lessons_in(tmp_path) if lesson.chunks[0].source_file == "src/lesson.md"]
    page = page_of(lesson)

    assert "Included <em>text</em>." in page.html
    assert "part.md" not in page.html
    assert page.origin == "file"
    anchors = [heading.anchor for heading in page.headings if heading.level > 1]
    assert anchors == (["use-it", "use-it-1"] if config == "book.toml" else ["use-it", "use-it_1"])


def test_a_lesson_with_includes_is_shown_as_its_site_shows_it(tmp_path: Path) -> None:
    """Hidden lines of Rust are not shown, quotes stay whole, reference links lead on, and each block has the line of
    the lesson's own file."""
    quote = "\n>\n".join(f"> Paragraph {number} of a long quote. {'More words follow. ' * 30}" for number in range(9))
    text = (
        f"# T\n\n{quote}\n\n```rust\n{{{{#rustdoc_include ../code/main.rs:2}}}}\n```\n\n"
        "See [there][site]<!-- ignore -->.\n\n"
        "[site]: https://example.org/\n"
    )
    for name, content in {
        "book.toml": "",
        "src/lesson.md": text,
        "code/main.rs": "fn main() {\n    let shown = 1;\n}\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    [lesson] = [lesson for lesson in lessons_in(tmp_path) if lesson.chunks[0].source_file == "src/lesson.md"]
    assert len(lesson.chunks) > 1
    page = page_of(lesson)

    assert page.html.count("<blockquote") == 1
    assert page.html.count("fn") == 0
    assert "shown" in page.html
    assert '<p data-lines="25-25">See <a href="https://example.org/"' in page.html
    assert "</a>.</p>" in page.html

    (tmp_path / "code" / "main.rs").write_text("fn main() {\n    let other = 1;\n}\n", encoding="utf-8")
    assert "shown" in page_of(lesson).html


async def test_a_huge_lesson_leaves_the_loop_free(tmp_path: Path) -> None:
    """A megabyte of signs is shown block by block, and other requests are answered meanwhile."""
    (tmp_path / "lesson.md").write_text("# Big\n\n" + "*a* [b](c) `d`\n\n" * 20_000, encoding="utf-8")
    [lesson] = lessons_in(tmp_path)
    task = asyncio.create_task(LessonPages().page(lesson))
    turns = 0
    while not task.done():
        await asyncio.sleep(0.005)
        turns += 1
    page = task.result()

    assert turns > 10
    assert page.origin == "file"
    assert Visible(page.html).ids == ["big"]
    assert page.html.count("*a* [b](c) `d`") == 20_000


def test_a_fault_of_the_renderer_costs_no_lesson(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If rendering fails, the blocks are shown without inline Markdown, with their anchors and lines."""

    def fail(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(lessons_module, "parse", fail)
    (tmp_path / "lesson.md").write_text("# T\n\n## Part\n\n*Text* of it.\n\n```\n<x>\n```\n", encoding="utf-8")
    [lesson] = lessons_in(tmp_path)
    with capture_logs() as entries:
        page = lessons_module.render_lesson(lesson, lessons_module.indexed_file(lesson))

    assert [entry["event"] for entry in entries] == ["the lesson is shown without Markdown"]
    assert '<h2 id="part" data-lines="3-3">Part</h2>' in page.html
    assert '<p data-lines="5-5">*Text* of it.</p>' in page.html
    assert "&lt;x&gt;" in page.html


@pytest.mark.parametrize(
    ("source", "steps"),
    [
        (
            "graph TD\nA[Camera] --> B{Ready?}\nB -->|yes| C((Go))\nB -- no --> A",
            ["Camera → Ready?", "Ready? → Go: yes", "Ready? → Camera: no"],
        ),
        ("flowchart LR\n%% note\nA & B --> C; C -.-> D\nstyle A fill:#fff", ["A → C", "B → C", "C → D"]),
        (
            "sequenceDiagram\nparticipant A as The arm\nA->>B: move\nB-->>A: done",
            ["The arm → B: move", "B → The arm: done"],
        ),
        ("stateDiagram-v2\n[*] --> Idle", []),
        ("", []),
    ],
)
def test_the_arrows_of_a_diagram_are_listed(source: str, steps: list[str]) -> None:
    """Flowcharts and sequences can be read as a list; every diagram keeps its source."""
    html = diagram_html("mermaid", source)

    assert mermaid_steps(source) == steps
    assert html.count("<li>") == len(steps)
    assert "<pre>" in html


def test_a_large_diagram_is_its_source_alone() -> None:
    """A list of more than sixty arrows is left out."""
    assert mermaid_steps("graph TD\n" + "A --> B\n" * 61) == []
