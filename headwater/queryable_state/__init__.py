"""Read the state of running jobs: `QueryableStateClient`, and SQL over one consistent epoch."""

from headwater.common.query_error import QueryError, QueryProblem
from headwater.queryable_state.async_client import AsyncQueryableStateClient
from headwater.queryable_state.client import QueryableStateClient
from headwater.queryable_state.reader import Page, StateValue
from headwater.queryable_state.series import Series

__all__ = [
    "AsyncQueryableStateClient",
    "Page",
    "QueryError",
    "QueryProblem",
    "QueryableStateClient",
    "Series",
    "StateValue",
]
