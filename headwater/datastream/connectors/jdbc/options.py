"""How to reach a database, and how to write to it: the options of PyFlink's JDBC connector."""

from __future__ import annotations

from dataclasses import dataclass, field

from headwater.common.errors import ConfigurationError
from headwater.common.secrets import without_passwords
from headwater.datastream.no_effect import warn_no_effect


@dataclass(frozen=True)
class JdbcConnectionOptions:
    """Where a database is and who asks. Any value may refer to a secret: ${env:NAME}, ${file:/path}."""

    url: str
    user_name: str | None = None
    password: str | None = field(default=None, repr=False)
    driver_name: str | None = None

    def get_db_url(self) -> str:
        return self.url

    def get_driver_name(self) -> str | None:
        return self.driver_name

    def get_user_name(self) -> str | None:
        return self.user_name

    def get_password(self) -> str | None:
        return self.password

    class JdbcConnectionOptionsBuilder:
        """Collects them."""

        def __init__(self) -> None:
            self._url = ""
            self._user_name: str | None = None
            self._password: str | None = None
            self._driver_name: str | None = None

        def with_url(self, url: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """`jdbc:postgresql://host:port/database?...`, `jdbc:mysql:`, `jdbc:mariadb:` or `jdbc:sqlite:/path`."""
            self._url = url
            return self

        def with_driver_name(self, driver_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Without effect: the URL says which database it is, and no Java driver is needed."""
            warn_no_effect("with_driver_name()", "the URL says which database it is, and no Java driver is needed")
            self._driver_name = driver_name
            return self

        def with_user_name(self, user_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            self._user_name = user_name
            return self

        def with_password(self, password: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            self._password = password
            return self

        def build(self) -> JdbcConnectionOptions:
            if not isinstance(self._url, str) or not self._url.startswith("jdbc:"):
                found = without_passwords(repr(self._url))
                raise ConfigurationError(
                    "JdbcConnectionOptions: expected a URL such as 'jdbc:postgresql://host:5432/database', found "
                    f"{found}; call with_url"
                )
            return JdbcConnectionOptions(self._url, self._user_name, self._password, self._driver_name)


DEFAULT_BATCH_INTERVAL_MS = 0
DEFAULT_BATCH_SIZE = 5000
DEFAULT_MAX_RETRIES = 3


@dataclass(frozen=True)
class JdbcExecutionOptions:
    """How statements are grouped and repeated. The defaults are Flink's.

    `batch_size` rows go to the database in one round trip. `batch_interval_ms` is for at least once only: rows wait no
    longer than that (0: until the batch is full or the epoch ends). A transaction that
    fails because of the connection is repeated `max_retries` times at once; then the job's restart strategy decides.
    """

    batch_interval_ms: int = DEFAULT_BATCH_INTERVAL_MS
    batch_size: int = DEFAULT_BATCH_SIZE
    max_retries: int = DEFAULT_MAX_RETRIES

    def get_batch_interval_ms(self) -> int:
        return self.batch_interval_ms

    def get_batch_size(self) -> int:
        return self.batch_size

    def get_max_retries(self) -> int:
        return self.max_retries

    @staticmethod
    def defaults() -> JdbcExecutionOptions:
        return JdbcExecutionOptions()

    @staticmethod
    def builder() -> JdbcExecutionOptions.Builder:
        return JdbcExecutionOptions.Builder()

    class Builder:
        """Collects them."""

        def __init__(self) -> None:
            self._interval_ms = DEFAULT_BATCH_INTERVAL_MS
            self._size = DEFAULT_BATCH_SIZE
            self._max_retries = DEFAULT_MAX_RETRIES

        def with_batch_interval_ms(self, interval_ms: int) -> JdbcExecutionOptions.Builder:
            self._interval_ms = _number("with_batch_interval_ms", interval_ms, 0)
            return self

        def with_batch_size(self, size: int) -> JdbcExecutionOptions.Builder:
            self._size = _number("with_batch_size", size, 1)
            return self

        def with_max_retries(self, max_retries: int) -> JdbcExecutionOptions.Builder:
            self._max_retries = _number("with_max_retries", max_retries, 0)
            return self

        def build(self) -> JdbcExecutionOptions:
            return JdbcExecutionOptions(self._interval_ms, self._size, self._max_retries)


def _number(method: str, given: object, least: int) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or given < least:
        raise ConfigurationError(f"{method}: expected a number of at least {least}, found {given!r}")
    return given
