"""The table of all routes."""

from __future__ import annotations

from headwater.server.routes import (
    checkpoints,
    cluster,
    documents,
    jobmanager,
    jobs,
    metrics,
    operations,
    page,
    programs,
    series,
    state,
    taskmanagers,
    vertices,
)

ROUTES = (
    *cluster.ROUTES,
    *jobs.ROUTES,
    *checkpoints.ROUTES,
    *vertices.ROUTES,
    *metrics.ROUTES,
    *operations.ROUTES,
    *state.ROUTES,
    *series.ROUTES,
    *taskmanagers.ROUTES,
    *jobmanager.ROUTES,
    *programs.ROUTES,
    *documents.ROUTES,
    *page.ROUTES,
)
