"""One SQLite file per run is the record of truth: what was asked, and each trial as it ended.

One process writes it, one commit per trial, so that a killed search loses no finished trial.
"""

from __future__ import annotations

import fcntl
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from arch.errors import InputError, Problem
from dse.config import NOT_DECISIVE, SearchConfig, from_plain, to_plain
from dse.study import Study
from dse.trial import Trial, TrialState

FILE = "study.sqlite"
LOCK = "study.lock"

#: Of the tables below; a change of their form gets the next number.
SCHEMA_VERSION = 1

_TABLES = (
    "CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE trial (number INTEGER PRIMARY KEY, state TEXT NOT NULL, record TEXT NOT NULL)",
)

_PUT = "INSERT OR REPLACE INTO run VALUES (?, ?)"


def product_version() -> str:
    """The installed version, as recorded with each trial."""
    try:
        return version("tilewright")
    except PackageNotFoundError:
        return "source"


def load_study(run_dir: Path) -> Study:
    """The study in a run directory, finished or not; ``InputError`` if there is none."""
    connection = _existing(run_dir)
    try:
        run = _run(connection)
        trials = _trials(connection, run_dir)
    finally:
        connection.close()
    if not trials or trials[0].number != 0:
        raise _wrong(run_dir, "holds a study without any trial yet")
    with _readable(run_dir, "malformed facts of the run"):
        return Study(
            config=from_plain(json.loads(run["config"])),
            start=trials[0],
            trials=trials[1:],
            run_dir=run_dir,
            stopped=run["stopped"],
            workloads=json.loads(run["workloads"]),
        )


def recorded_trials(run_dir: Path) -> tuple[Trial, ...]:
    """Trials so far by number, the start (0) included; none if it was killed before the first."""
    connection = _existing(run_dir)
    try:
        return _trials(connection, run_dir)
    finally:
        connection.close()


class Store:
    """The study file of a run directory, claimed for writing until it is closed."""

    def __init__(self, run_dir: Path, claim: IO[bytes], connection: sqlite3.Connection) -> None:
        self._run_dir = run_dir
        self._claim = claim
        self._connection = connection

    @classmethod
    def create(cls, run_dir: Path, config: SearchConfig, workloads: Mapping[str, str]) -> Self:
        """A new study; ``InputError`` if the directory holds one already.

        ``workloads`` are fingerprints by specification: a user's function may change.
        """
        if (run_dir / FILE).exists():
            raise _wrong(run_dir, "holds a study already; resume it, or choose another directory")
        run_dir.mkdir(parents=True, exist_ok=True)
        claim = _claim(run_dir)
        connection = _connect(f"file:{run_dir / FILE}")
        facts = {
            "schema": str(SCHEMA_VERSION),
            "version": product_version(),
            "workloads": json.dumps(dict(workloads)),
            "config": json.dumps(to_plain(config)),
            "stopped": "running",
        }
        with connection:  # all or nothing: a file without its facts could not be resumed
            connection.execute("BEGIN")
            for table in _TABLES:
                connection.execute(table)
            connection.executemany(_PUT, list(facts.items()))
        return cls(run_dir, claim, connection)

    @classmethod
    def resume(cls, run_dir: Path, config: SearchConfig, workloads: Mapping[str, str]) -> Self:
        """A study to go on with; ``InputError`` if what it asked is not ``config``."""
        _existing(run_dir).close()
        claim = _claim(run_dir)
        connection = _connect(f"file:{run_dir / FILE}")
        try:
            with _readable(run_dir, "malformed facts of the run"):
                changed = _changes(_run(connection), config, workloads)
            if changed:
                raise _wrong(run_dir, "cannot be resumed, for what it asks has changed", changed)
        except InputError:
            connection.close()
            claim.close()
            raise
        store = cls(run_dir, claim, connection)
        store.put(config=json.dumps(to_plain(config)), stopped="running")
        return store

    def put(self, **values: str) -> None:
        """Facts of the run; one commit."""
        with self._connection:
            self._connection.executemany(_PUT, list(values.items()))

    def record(self, trial: Trial) -> None:
        """One finished trial; one commit. A failed one may be replaced by its repetition."""
        with self._connection:
            self._connection.execute(
                "INSERT INTO trial VALUES (?, ?, ?) ON CONFLICT (number) DO UPDATE "
                "SET state = excluded.state, record = excluded.record WHERE state = 'FAILED'",
                (trial.number, trial.state.value, json.dumps(trial_to_plain(trial))),
            )

    def trials(self) -> tuple[Trial, ...]:
        """All recorded trials by number, the start (0) included."""
        return _trials(self._connection, self._run_dir)

    def close(self) -> None:
        self._connection.close()
        self._claim.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def trial_to_plain(trial: Trial) -> dict[str, Any]:
    """JSON data; ``trial_from_plain`` is its inverse."""
    return {f.name: getattr(trial, f.name) for f in fields(trial)}


def trial_from_plain(data: Mapping[str, Any]) -> Trial:
    return Trial(**{**data, "state": TrialState(data["state"])})


def _connect(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True)
    connection.execute("PRAGMA journal_mode = WAL")
    # With a write-ahead log this survives the death of the process; only a power cut may lose
    # the last trials, which a resumed search then repeats with the same result.
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def _existing(run_dir: Path) -> sqlite3.Connection:
    if not (run_dir / FILE).is_file():
        raise _wrong(run_dir, f"holds no study (there is no {FILE})")
    connection = sqlite3.connect(f"file:{run_dir / FILE}?mode=ro", uri=True)
    try:
        found = _run(connection)["schema"]
    except (sqlite3.DatabaseError, KeyError) as error:
        connection.close()
        raise _wrong(run_dir, f"holds a {FILE} that is not a study: {error}") from error
    if found != str(SCHEMA_VERSION):
        connection.close()
        raise _wrong(run_dir, f"holds a study of format {found}; this is format {SCHEMA_VERSION}")
    return connection


def _claim(run_dir: Path) -> IO[bytes]:
    """One writer at a time; the claim ends with the process, however that ends."""
    handle = (run_dir / LOCK).open("wb")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        handle.close()
        raise _wrong(run_dir, "is in use by another search") from error
    return handle


def _run(connection: sqlite3.Connection) -> dict[str, str]:
    return dict(connection.execute("SELECT key, value FROM run"))


def _trials(connection: sqlite3.Connection, run_dir: Path) -> tuple[Trial, ...]:
    rows = connection.execute("SELECT number, record FROM trial ORDER BY number")
    return tuple(_trial(run_dir, number, record) for number, record in rows)


def _trial(run_dir: Path, number: int, record: str) -> Trial:
    with _readable(run_dir, f"a malformed record of trial {number}"):
        return trial_from_plain(json.loads(record))


@contextmanager
def _readable(run_dir: Path, what: str) -> Iterator[None]:
    """Data that has another form than what was written is the file's fault."""
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise _wrong(run_dir, f"holds {what}: {reason}") from error


def _changes(
    run: Mapping[str, str], config: SearchConfig, workloads: Mapping[str, str]
) -> list[str]:
    """What decides the results and is not as it was, one sentence each."""
    before, now = json.loads(run["config"]), json.loads(json.dumps(to_plain(config)))
    changed = [
        f"{key}: was {_short(before[key])}, is {_short(now[key])}"
        for key in now
        if key not in NOT_DECISIVE and before[key] != now[key]
    ]
    if run["version"] != product_version():
        changed.append(f"version: was {run['version']}, is {product_version()}")
    then = json.loads(run["workloads"])
    moved = [spec for spec, now_is in workloads.items() if then.get(spec, now_is) != now_is]
    return changed + [f"workload {spec}: the network that it names is another" for spec in moved]


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def _wrong(run_dir: Path, message: str, details: list[str] | None = None) -> InputError:
    return InputError([Problem("; ".join([message, *(details or [])]), where=str(run_dir))])
