"""`/` and `/dashboard/…`: the page and its files. They hold no data, so they need no token; the page asks for one."""

from __future__ import annotations

from starlette.responses import Response

from headwater.server.dashboard.page_files import CONTENT_SECURITY_POLICY, PageFile, page_files
from headwater.server.route import Access, Call, Route


def _route(file: PageFile, path: str) -> Route:
    headers = {"Cache-Control": file.cache_control, "Content-Security-Policy": CONTENT_SECURITY_POLICY}

    async def serve(call: Call) -> Response:
        return Response(file.content, media_type=file.content_type, headers=headers)

    return Route("GET", path, serve, "A file of the dashboard", access=Access.PUBLIC, answer=file.content_type)


ROUTES = (
    *(_route(file, file.path) for file in page_files()),
    _route(page_files()[0], "/index.html"),
)
"""One literal route per file: no path from a request ever reaches the file system."""
