"""Options that several commands share. The options that narrow a question are declared once; a command gets them as one
`Scope`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from lectern.domain.scope import Scope

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs, as the last line of stdout.")]
Direct = Annotated[bool, typer.Option("--direct", help="Never go through a running server; fail if one owns the home.")]
Book = Annotated[str | None, typer.Option("--book", help="The book's id; may be left out while only one is indexed.")]
BookArgument = Annotated[
    str | None, typer.Argument(metavar="[BOOK]", help="The book's id; may be left out while only one is indexed.")
]
SCOPE_OPTIONS: dict[str, Any] = {
    "book": Book,
    "tier": Annotated[
        int | None, typer.Option("--tier", help="Hardware tier of the reader, 1 to 4: this tier or lower.")
    ],
    "module": Annotated[str | None, typer.Option("--module", help="Only this module.")],
    "chapter_min": Annotated[int | None, typer.Option("--chapter-min", help="First chapter.")],
    "chapter_max": Annotated[int | None, typer.Option("--chapter-max", help="Last chapter.")],
    "lesson": Annotated[int | None, typer.Option("--lesson", help="Only lessons with this number.")],
    "level": Annotated[list[str] | None, typer.Option("--level", help="Proficiency level (A1 … C2); may be repeated.")],
    "layer": Annotated[str | None, typer.Option("--layer", help="Teaching layer (L1 … L4).")],
}


def with_scope(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter `scope` of a command by the options in SCOPE_OPTIONS, which typer sees."""
    signature = inspect.signature(command, eval_str=True)

    @functools.wraps(command)
    def wrapper(*args: Any, **options: Any) -> None:  # noqa: ANN401  # what typer read
        command(*args, scope=_scope(**{name: options.pop(name) for name in SCOPE_OPTIONS}), **options)

    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in SCOPE_OPTIONS.items()
    ]
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        parameters += options if name == "scope" else [parameter]
    wrapper.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # inspect's
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapper


def book_from_either(argument: str | None, option: str | None) -> str | None:
    """The book of a command that accepts it as an argument or as the option --book."""
    if argument and option and argument != option:
        raise typer.BadParameter(f"{argument!r} and --book {option!r} are two books; name one")
    return argument or option


def _scope(  # noqa: PLR0913  # one parameter an option
    *,
    book: str | None,
    tier: int | None,
    module: str | None,
    chapter_min: int | None,
    chapter_max: int | None,
    lesson: int | None,
    level: list[str] | None,
    layer: str | None,
) -> Scope:
    return Scope(
        book_id=book,
        tier=tier,
        module=module,
        chapters=None if chapter_min is None and chapter_max is None else (chapter_min, chapter_max),
        lesson=lesson,
        levels=tuple(level) if level else None,  # typer gives an empty list for a missing option
        layer=layer,
    )
