"""LECTERN_HOME: the folder for all local files. One process owns it at a time, because the embedded index and SQLite
allow no more."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from lectern.domain.errors import ConfigError, InUse

FOLDER = ".lectern"
SERVER = "server.json"
OWNER = "owner"
VARIABLE = "LECTERN_HOME"
SETTING_PREFIXES = ("LECTERN_", "OPENAI_", "AGENT_", "QDRANT_", "COHERE_", "DATABASE_URL")
ENV_FILE = ".env"
FOLDERS = ("index", "calibrations", "evals")
FILES = ("lectern.db", SERVER)  # and what begins with these: journals, unfinished files
GROUP_AND_OTHERS = stat.S_IRWXG | stat.S_IRWXO
LOCK_ATTEMPTS, LOCK_RETRY_SECONDS = 5, 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """Where a server accepts commands of this machine, and the token that they need."""

    url: str
    token: str
    pid: int
    model: str = ""  # that answers there
    digests: Mapping[str, str] = field(default_factory=dict)  # of the settings that it was started with

    def has_setting(self, name: str, value: str) -> bool:
        """Whether the server was started with this value of a variable."""
        return self.digests.get(name) == _digest(value, self.token)

    @property
    def description(self) -> str:
        """The server, for a person."""
        return f"the server (process {self.pid}, port {urlsplit(self.url).port})"


@dataclass(frozen=True, slots=True)
class Home:
    """The paths of the local files."""

    path: Path

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.path / "lectern.db"

    @property
    def indexes(self) -> Path:
        """The folder of the embedded collections."""
        return self.path / "index"

    @property
    def calibrations(self) -> Path:
        """The folder of calibrations, one file for each book."""
        return self.path / "calibrations"

    def protect(self) -> None:
        """Let no other user read what is here: conversations are private. A folder that holds other things too keeps
        its own rights, because others may need them; what is Lectern's in it does not."""
        if os.name != "posix":
            return
        entries = list(self.path.iterdir())
        own_entries = [entry for entry in entries if _is_own(entry.name)]
        for path in [self.path, *own_entries] if len(own_entries) == len(entries) else own_entries:
            try:
                mode = path.stat().st_mode
                if mode & GROUP_AND_OTHERS:
                    path.chmod(stat.S_IMODE(mode) & ~GROUP_AND_OTHERS)
            except FileNotFoundError:  # SQLite deletes its journals
                continue
            except OSError as exc:
                raise ConfigError(
                    f"{path} can be read by other users, and that cannot be changed ({exc.strerror}); it holds "
                    "conversations: run chmod -R go= on it as its owner, or set LECTERN_HOME to a folder of your own"
                ) from exc

    def server(self) -> ServerAddress | None:
        """The address of the server that owns this folder, if there is one."""
        try:
            file = self.path / SERVER
            address = json.loads(file.read_text(encoding="utf-8"))
            owner = (self.path / OWNER).read_text(encoding="utf-8").strip()
            if str(address["pid"]) != owner or not self._has_owner():  # left by a server that was killed
                return None
            if os.name == "posix" and file.stat().st_uid != os.getuid():  # another user could read what is sent there
                return None
            return ServerAddress(
                url=str(address["url"]),
                token=str(address["token"]),
                pid=int(address["pid"]),
                model=str(address.get("model", "")),
                digests=dict(address.get("settings", {})),
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _has_owner(self) -> bool:
        """Whether a process holds the lock now. A shared lock is tried, so that two commands do not see each other."""
        with (self.path / OWNER).open("a+", encoding="utf-8") as handle:
            return not _lock(handle.fileno(), shared=True)

    @contextlib.contextmanager
    def serving(
        self, url: str, token: str, *, model: str = "", settings: Mapping[str, str] | None = None
    ) -> Iterator[None]:
        """Write down the server's address for commands while the block runs; only this user may read it. Of settings
        there are digests: a command can tell whether its own are the same."""
        file = self.path / SERVER
        # not written in place: several servers without an embedded part may start in one home at the same time
        descriptor, unfinished = tempfile.mkstemp(prefix=SERVER, dir=self.path)
        with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
            digests = {name: _digest(value, token) for name, value in (settings or {}).items()}
            address = {"pid": os.getpid(), "url": url, "token": token, "model": model, "settings": digests}
            json.dump(address, handle)
        Path(unfinished).replace(file)
        try:
            yield
        finally:
            file.unlink(missing_ok=True)

    @contextlib.contextmanager
    def owned(self) -> Iterator[None]:
        """Own the home while the block runs; a second process gets an error that names the owner."""
        file = self.path / OWNER
        with file.open("a+", encoding="utf-8") as handle:
            if not _lock_patiently(handle.fileno()):
                handle.seek(0)
                raise InUse(
                    f"{self.path} is in use by process {handle.read().strip() or '(unknown)'}; "
                    "stop it first, or set LECTERN_HOME to another folder"
                )
            handle.seek(0)
            handle.truncate()
            handle.write(str(os.getpid()))
            handle.flush()
            yield  # closing the handle releases the lock


def _is_own(name: str) -> bool:
    """Whether a file or folder of this name in a home is Lectern's."""
    return name in (*FOLDERS, OWNER) or name.startswith(FILES)


def _digest(value: str, token: str) -> str:
    return hashlib.sha256(f"{token}\n{value}".encode(errors="surrogateescape")).hexdigest()


def shell_variables() -> set[str]:
    """The names of variables in the environment that may be settings, but for the home."""
    return {name.upper() for name in os.environ if name.upper().startswith(SETTING_PREFIXES)} - {VARIABLE}


def configured_home() -> Path | None:
    """LECTERN_HOME from the environment or `.env`, without the other settings: a command that goes through a server
    does not need them."""
    value = _variable(os.environ)
    if not value and Path(ENV_FILE).is_file():
        from dotenv import dotenv_values

        value = _variable(dotenv_values(ENV_FILE))
    return Path(value) if value else None


def _variable(environment: Mapping[str, str | None]) -> str | None:
    """LECTERN_HOME in any case, as the settings read it."""
    return next((value for name, value in environment.items() if name.upper() == VARIABLE and value), None)


def find_home(configured: Path | None, *, create: bool) -> Home:
    """The configured folder, else the nearest `.lectern/` in this folder or above, else one here."""
    path = configured or _nearest() or Path.cwd() / FOLDER
    if create:
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)  # conversations are private
        except OSError as exc:
            raise ConfigError(
                f"{path} cannot be created ({exc.strerror}); set LECTERN_HOME to a folder you may write"
            ) from exc
    elif path.exists() and not path.is_dir():
        raise ConfigError(f"{path} is no folder; set LECTERN_HOME to one")
    elif not path.is_dir():
        raise ConfigError(f"nothing is indexed here ({path} does not exist); run: lectern ingest PATH")
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise ConfigError(f"{path} cannot be read and written; set LECTERN_HOME to a folder of your own")
    home = Home(path.resolve())
    home.protect()
    return home


def _nearest() -> Path | None:
    here = Path.cwd()
    return next((folder / FOLDER for folder in (here, *here.parents) if (folder / FOLDER).is_dir()), None)


def _lock_patiently(descriptor: int) -> bool:
    """Take the lock. A command that looks for an owner holds it for a moment, so a few attempts are made."""
    for _ in range(LOCK_ATTEMPTS):
        if _lock(descriptor):
            return True
        time.sleep(LOCK_RETRY_SECONDS)
    return False


def _lock(descriptor: int, *, shared: bool = False) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows
        return _lock_windows(descriptor)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lock_windows(descriptor: int) -> bool:
    import msvcrt

    try:
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)  # far behind the text, so that the pid stays readable
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]  # exists on Windows only
    except OSError:
        return False
    return True
