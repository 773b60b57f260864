"""The error that becomes an HTTP answer, in the shape that Flink's clients read: `{"errors": ["text"]}`."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import JSONResponse, Response

from headwater.common.errors import HeadwaterError


class HttpError(HeadwaterError):
    """A request that cannot be answered. `status` says whose fault it is; the text goes to the client."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = dict(headers or {})

    def response(self) -> Response:
        return JSONResponse({"errors": [self.text]}, self.status, self.headers)


def job_not_found(job_id: str) -> HttpError:
    return HttpError(404, f"Job {job_id} not found")


def not_reachable(text: str) -> HttpError:
    """The driver does not answer. Trying again may help."""
    return HttpError(503, text, {"Retry-After": "5"})
