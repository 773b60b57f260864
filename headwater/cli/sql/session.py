"""Runs statements one after another, and tells what became of each."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from headwater.cli.sql.script import Piece
from headwater.cli.sql.settings import ClientSettings
from headwater.cli.sql.views import box, live, vertical
from headwater.common.config_options import RUNTIME_MODE, SAVEPOINT_DIRECTORY
from headwater.common.configuration import Configuration
from headwater.common.errors import HeadwaterError, SqlError
from headwater.common.job_client import JobClient
from headwater.table.environment_settings import EnvironmentSettings
from headwater.table.parser.ast import statements as ast
from headwater.table.parser.parse import parse_statement
from headwater.table.table_environment import TableEnvironment
from headwater.table.table_result import TableResult

HELP = """\
SQL as Flink has it; a statement ends with ';', or with '\\G' to see rows one below the other.
  SHOW TABLES; DESCRIBE t; SHOW FUNCTIONS; SHOW CREATE TABLE t;
  SET 'key' = 'value'; SET; RESET 'key'; RESET;
  SET 'sql-client.execution.result-mode' = 'tableau' | 'changelog' | 'table';
  SET 'table.dml-sync' = 'true';   INSERT waits until its job has ended
  SHOW JOBS; STOP JOB 'id' [WITH SAVEPOINT] [WITH DRAIN];
  CLEAR; HELP; QUIT;
Ctrl-C cancels the query that runs, not the client."""


class Quit(Exception):
    """The client is to end."""


@dataclass
class _Job:
    client: JobClient
    name: str
    started: float


class Session:
    """One client: an environment, its settings, and the jobs that it started. All jobs end with it."""

    def __init__(self, environment: TableEnvironment, console: Console | None = None) -> None:
        self.environment = environment
        self.settings = ClientSettings()
        self._jobs: list[_Job] = []
        self._console = console or Console()

    @staticmethod
    def of_mode(mode: str, settings: dict[str, str]) -> Session:
        configuration = Configuration()
        for key, value in settings.items():
            if not ClientSettings().owns(key):
                configuration.set_string(key, value)
        builder = EnvironmentSettings.new_instance().with_configuration(configuration)
        builder = builder.in_batch_mode() if mode == "batch" else builder.in_streaming_mode()
        environment = TableEnvironment.create(builder.build())
        session = Session(environment)
        for key, value in settings.items():
            if session.settings.owns(key):
                session.set(key, value)
        return session

    def run(self, piece: Piece) -> None:
        """Run a statement. Raises `HeadwaterError` if it fails, `Quit` to end."""
        match piece.text.strip().rstrip(";").upper():
            case "QUIT" | "EXIT":
                raise Quit
            case "HELP":
                self._write(HELP)
                return
            case "CLEAR":
                self._console.clear()
                return
        statement = parse_statement(piece.text)
        match statement:
            case ast.SetOption():
                self._set(statement)
            case ast.ResetOption():
                self._reset(statement)
            case ast.Show() if statement.what == "JOBS":
                self._show_jobs()
            case ast.StopJob():
                self._stop_job(statement)
            case _:
                self._execute(piece, statement)

    def set(self, key: str, value: str) -> None:
        if self.settings.owns(key):
            self.settings.set(key, value)
        else:
            Configuration.from_dict({key: value}).get(RUNTIME_MODE)  # a mode that is none is an error now
            self.environment.get_config().set(key, value)

    def wait_for_jobs(self) -> None:
        """Wait for all INSERTs that still run. The first that fails raises."""
        for job in self._jobs:
            job.client.get_job_execution_result().result()

    def running(self) -> int:
        return sum(not _ended(job.client) for job in self._jobs)

    def cancel_jobs(self) -> None:
        for job in self._jobs:
            if not _ended(job.client):
                job.client.cancel().result()

    # -- settings

    def _set(self, statement: ast.SetOption) -> None:
        if statement.key is None:
            known = {**self.environment.get_config().get_configuration().to_dict(), **dict(self.settings.items())}
            rows = [[key, str(known[key])] for key in sorted(known)]
            for line in box(["key", "value"], rows):
                self._write(line)
            return
        self.set(statement.key, statement.value or "")
        self._info("Execute statement succeeded.")

    def _reset(self, statement: ast.ResetOption) -> None:
        if statement.key is None:
            self.settings.reset_all()
        if statement.key is not None and self.settings.owns(statement.key):
            self.settings.reset(statement.key)
        else:
            self.environment.execute_sql("RESET" if statement.key is None else f"RESET '{statement.key}'")
        self._info("Execute statement succeeded.")

    # -- statements of the environment

    def _execute(self, piece: Piece, statement: Any) -> None:
        result = self.environment.execute_sql(piece.text)
        client = result.get_job_client()
        if isinstance(statement, ast.QueryStatement) and client is not None:
            self._show_query(result, client, piece)
        elif client is not None:
            self._submitted(client, statement)
        elif piece.vertical:
            vertical(result)
        elif result.is_done():
            self._info("Execute statement succeeded.")
        else:
            result.print()

    def _show_query(self, result: TableResult, client: JobClient, piece: Piece) -> None:
        try:
            if piece.vertical:
                vertical(result, changes=True)
            elif self.settings.mode == "tableau" or not self._console.is_terminal:
                result.print()
            else:
                received = live(result, self.settings.mode, self.settings.max_rows, self._console)
                self._write(f"Received a total of {received} {'row' if received == 1 else 'rows'}")
        except KeyboardInterrupt:
            client.cancel().result()
            self._write("\nQuery terminated.")

    def _submitted(self, client: JobClient, statement: Any) -> None:
        name = type(statement).__name__ if not isinstance(statement, ast.Insert) else ".".join(statement.table)
        self._jobs.append(_Job(client, f"insert-into_{name}", time.time()))
        self._info(f"SQL update statement has been successfully submitted.\nJob ID: {client.get_job_id()}")
        if self.settings.waits:
            try:
                client.get_job_execution_result().result()
            except KeyboardInterrupt:
                client.cancel().result()
                self._write("\nJob cancelled.")
                return
            self._info("Complete execution of the SQL update statement.")

    # -- jobs

    def _show_jobs(self) -> None:
        rows = []
        for job in self._jobs:
            status = job.client.get_job_status().result()
            started = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(job.started))
            rows.append([str(job.client.get_job_id()), job.name, getattr(status, "name", str(status)), started])
        for line in box(["job id", "job name", "status", "start time"], rows):
            self._write(line)

    def _stop_job(self, statement: ast.StopJob) -> None:
        found = next((job for job in self._jobs if str(job.client.get_job_id()) == statement.job_id), None)
        if found is None:
            known = ", ".join(str(job.client.get_job_id()) for job in self._jobs) or "none"
            raise SqlError(f"this client has not started a job '{statement.job_id}' (its jobs: {known}); SHOW JOBS")
        if statement.with_savepoint:
            directory = self.environment.get_config().get_configuration().get(SAVEPOINT_DIRECTORY)
            if not directory:
                raise SqlError(f"WITH SAVEPOINT needs a place: SET '{SAVEPOINT_DIRECTORY.key}' = '…'")
            path = found.client.stop_with_savepoint(statement.with_drain, directory).result()
            for line in box(["savepoint path"], [[str(path)]]):
                self._write(line)
            return
        if statement.with_drain:
            raise SqlError("WITH DRAIN goes with WITH SAVEPOINT")
        found.client.cancel().result()
        self._info("Execute statement succeeded.")

    def _write(self, text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    def _info(self, text: str) -> None:
        self._write(f"[INFO] {text}")


def _ended(client: JobClient) -> bool:
    return bool(client.get_job_status().result().is_globally_terminal_state())


def error_text(error: HeadwaterError) -> str:
    """An error as the client shows it."""
    return f"[ERROR] {error}"
