"""API keys and callers as values. A key is shown once, when it is made. Afterwards its id names it in lists, logs and
limits; the id alone gives no access. A publishable key is in a page's source, so it allows little: one book, reading
and asking, from listed origins.

A caller is determined once, before any route. Everything after that compares with it.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import string
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from lectern.domain.errors import BadInput
from lectern.domain.threads import LOCAL_OWNER

Right = Literal["read", "chat", "ingest", "admin"]
RIGHTS: tuple[Right, ...] = ("read", "chat", "ingest", "admin")
KeyKind = Literal["secret", "publishable"]
KeyState = Literal["active", "expired", "revoked"]
PREFIXES: dict[KeyKind, str] = {"secret": "lk", "publishable": "lp"}
PUBLISHABLE_RIGHTS: frozenset[Right] = frozenset({"read", "chat"})
DEFAULT_RIGHTS: tuple[Right, ...] = ("read", "chat")
SECRET_ALPHABET = string.ascii_letters + string.digits
SECRET_LENGTH = 32  # of 62 signs: 190 random bits
ID_LENGTH = 12
NAME_LENGTH = 100
MAX_DAYS = 36_500  # a hundred years; a date must stay one that both databases can write
MAX_GRACE_HOURS = 24 * 90
PORTS = {"http": 80, "https": 443}
_KEY = re.compile(rf"(?:lk|lp)_([a-z0-9]{{{ID_LENGTH}}})_[A-Za-z0-9]{{{SECRET_LENGTH}}}", re.ASCII)
_BOOK = re.compile(r"[^\W_A-Z-][^\W_A-Z]*(?:-[^\W_A-Z]+)*")  # a slug: letters of any script, digits, hyphens
BOOK_LENGTH = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The sender of a request, and what it may do."""

    owner: str  # of threads and runs; survives a key's rotation
    rights: frozenset[Right]
    books: frozenset[str] | None  # that may be read; None for all
    key_id: str | None = None  # None: no key exists, or a command on this machine
    reader: str | None = None  # of a publishable key: one browser
    nameless: bool = False  # a publishable key without a reader: may read, but no conversation is its own

    def may_read(self, book_id: str) -> bool:
        """Whether this caller may read a book."""
        return self.books is None or book_id in self.books

    @property
    def is_operator(self) -> bool:
        """Whether this caller may do everything with every book."""
        return self.books is None and "admin" in self.rights


LOCAL = Caller(owner=LOCAL_OWNER, rights=frozenset(RIGHTS), books=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key without its secret."""

    key_id: str
    name: str
    kind: KeyKind
    owner: str  # of its threads; rotation keeps it
    rights: frozenset[Right]
    books: frozenset[str] | None  # that may be read; None for all
    origins: frozenset[str]  # of pages that may use it, if it is publishable
    created_at: str
    expires_at: str | None = None
    revoked_at: str | None = None
    last_used_at: str | None = None

    def state(self, now: str) -> KeyState:
        """Whether the key is active, expired or revoked at a moment."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedKey:
    """A new key together with its text, which is known only now."""

    key: Key
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRequest:
    """A key to be made. A combination that is not allowed is refused here."""

    name: str
    kind: KeyKind = "secret"
    rights: frozenset[Right] = frozenset(DEFAULT_RIGHTS)
    books: frozenset[str] | None = None
    origins: frozenset[str] = frozenset()
    days: float | None = None  # until it expires

    def __post_init__(self) -> None:
        if not self.name.strip() or len(self.name) > NAME_LENGTH or not self.name.isprintable():
            raise BadInput(f"a key needs a name of 1 to {NAME_LENGTH} printable characters", field="name")
        if not self.rights or not self.rights <= set(RIGHTS):
            raise BadInput(f"a key needs at least one right of {', '.join(RIGHTS)}", field="rights")
        for book in self.books or ():
            if len(book) > BOOK_LENGTH or not _BOOK.fullmatch(book):
                raise BadInput(f"{book!r} cannot be a book's id; see: lectern books", field="books")
        if self.books is not None and not self.books:
            raise BadInput("name at least one book, or none at all for every book", field="books")
        refuse_days(self.days)
        if self.kind == "publishable":
            self._refuse_powerful()
        elif self.origins:
            raise BadInput("only a publishable key has origins; add --publishable, or leave them out", field="origins")

    def _refuse_powerful(self) -> None:
        """Refuse rights that a key in a page's source must not have: everybody can read it there."""
        if not self.rights <= PUBLISHABLE_RIGHTS:
            raise BadInput("a publishable key may read and chat, nothing else", field="rights")
        if self.books is None or len(self.books) != 1:
            raise BadInput("a publishable key is for exactly one book; name it with --book", field="books")
        if not self.origins:
            raise BadInput(
                "a publishable key needs the origins of its pages: --origin https://example.org", field="origins"
            )


def refuse_days(days: float | None) -> None:
    """Refuse a lifetime that a key cannot have."""
    if days is not None and not 0 < days <= MAX_DAYS:
        raise BadInput(f"a key lives for more than 0 and at most {MAX_DAYS} days, not {days:g}", field="expires")


def new_key_id() -> str:
    """A new key id."""
    return "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(ID_LENGTH))


def new_text(kind: KeyKind, key_id: str) -> str:
    """A key's text, with a new secret."""
    secret = "".join(secrets.choice(SECRET_ALPHABET) for _ in range(SECRET_LENGTH))
    return f"{PREFIXES[kind]}_{key_id}_{secret}"


def key_id_in(text: str) -> str | None:
    """The id in a key's text; None if the text cannot be a key."""
    match = _KEY.fullmatch(text)
    return match[1] if match else None


def digest_of(text: str) -> str:
    """What is stored of a key. One SHA-256 is enough: 190-bit secrets cannot be guessed, however fast the hash."""
    return hashlib.sha256(text.encode()).hexdigest()


def origin_of(text: str) -> str:
    """An origin as browsers send it: scheme, host and port, nothing else."""
    wrong = BadInput(f"{text!r} is no origin; write it like https://example.org or http://localhost:3000")
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError:
        raise wrong from None
    clean = parts.path in ("", "/") and not parts.query and not parts.fragment and "@" not in parts.netloc
    if parts.scheme not in PORTS or not parts.hostname or not clean or not _plain(parts.hostname):
        raise wrong
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{'' if port in (None, PORTS[parts.scheme]) else f':{port}'}"


def _plain(host: str) -> bool:
    return re.fullmatch(r"[a-z0-9._:-]+", host, re.ASCII) is not None
