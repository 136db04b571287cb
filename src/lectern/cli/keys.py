"""`lectern keys`: manages the keys of the HTTP API. Commands on this machine need no key."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from lectern.app.commands import CreateKey, DeleteKey, ListKeys, RevokeKey, RotateKey
from lectern.cli.options import Direct, Json
from lectern.cli.remote import run_all, run_one
from lectern.cli.render import fail, run_async
from lectern.cli.terminal import confirm, echo, print_json

app = typer.Typer(help="Make, list, rotate, revoke and delete keys.", no_args_is_help=True, rich_markup_mode=None)
KeyId = Annotated[str, typer.Argument(metavar="KEY_ID", help="The key's id: the part between the two underscores.")]
Days = Annotated[float | None, typer.Option("--expires", metavar="DAYS", help="Days until it expires.")]


class RightName(StrEnum):
    """A right that a key may have."""

    READ = "read"
    CHAT = "chat"
    INGEST = "ingest"
    ADMIN = "admin"


DEFAULT_RIGHTS = [RightName.READ, RightName.CHAT]


@app.command("create")
def create(  # noqa: PLR0913  # one parameter for each thing a key has
    name: Annotated[str, typer.Option("--name", help="A name for the key.")],
    book: Annotated[list[str] | None, typer.Option("--book", help="Only this book; may be repeated.")] = None,
    right: Annotated[
        list[RightName], typer.Option("--right", help="What it allows; may be repeated.", show_default="read, chat")
    ] = DEFAULT_RIGHTS,
    expires: Days = None,
    origin: Annotated[
        list[str] | None, typer.Option("--origin", help="A page's origin (publishable keys); may be repeated.")
    ] = None,
    *,
    publishable: Annotated[
        bool, typer.Option("--publishable", help="For a page's source: one book, read and chat, listed origins.")
    ] = False,
    direct: Direct = False,
    json: Json = False,
) -> None:
    """Make a key. Its text is shown now and never again."""
    order = CreateKey(
        name=name,
        books=tuple(book or ()),
        rights=tuple(choice.value for choice in right),
        days=expires,
        origins=tuple(origin or ()),
        publishable=publishable,
    )
    issued_key = run_async(run_one(order, direct=direct))
    for missing in issued_key["not_indexed"]:
        echo(f"lectern: no book {missing!r} is indexed yet; the key will see it when it is", err=True)
    _print_issued(issued_key, json=json)


@app.command("list")
def list_keys(*, direct: Direct = False, json: Json = False) -> None:
    """List every key, revoked ones too; never their text."""
    keys = run_async(run_all(ListKeys(), direct=direct))
    if json:
        print_json(keys)
        return
    if not keys:
        echo("No key yet: whoever reaches this machine's loopback address may ask. See: lectern keys create")
    for key in keys:
        books = "every book" if key["books"] is None else ", ".join(key["books"])
        times = f"expires {key['expires_at'] or 'never'}, used {key['last_used_at'] or 'never'}"
        kind = "" if key["kind"] == "secret" else f" ({key['kind']}: {', '.join(key['origins'])})"
        rights = "+".join(key["rights"])
        echo(f"{key['key_id']}  {key['state']:7}  {rights}  {books}  {times}  {key['name']}{kind}")


@app.command("rotate")
def rotate(
    key_id: KeyId,
    grace: Annotated[
        float, typer.Option("--grace", metavar="HOURS", help="Hours that the old secret still works.")
    ] = 0,
    expires: Days = None,
    *,
    direct: Direct = False,
    json: Json = False,
) -> None:
    """Give a key a new secret; its rights and conversations stay. The old secret stops working at once."""
    order = RotateKey(key_id=key_id, grace=grace, days=expires)
    _print_issued(run_async(run_one(order, direct=direct)), json=json)


@app.command("revoke")
def revoke(key_id: KeyId, *, direct: Direct = False, json: Json = False) -> None:
    """Revoke a key, within 5 seconds on every server; its answers and ingestions in progress are cancelled."""
    revoked_key = run_async(run_one(RevokeKey(key_id=key_id), direct=direct))
    print_json(revoked_key) if json else echo(f"Revoked {key_id} ({revoked_key['name']})")


@app.command("delete")
def delete(
    key_id: KeyId,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    direct: Direct = False,
    json: Json = False,
) -> None:
    """Revoke a key and delete every conversation of the key and its readers. This cannot be undone."""
    if not yes and not confirm(f"Delete key {key_id!r} and every conversation of it?"):
        fail("nothing was deleted; --yes deletes without asking", 2)
    deleted_key = run_async(run_one(DeleteKey(key_id=key_id), direct=direct))
    description = f"{key_id} ({deleted_key['name']}) and {deleted_key['threads_deleted']} conversations"
    print_json(deleted_key) if json else echo(f"Deleted {description}")


def _print_issued(issued_key: dict[str, Any], *, json: bool) -> None:
    if json:
        print_json(issued_key)
        return
    echo(issued_key["key"])
    echo(f"Key {issued_key['key_id']} ({issued_key['name']}). Keep it now: it is not shown again.", err=True)
