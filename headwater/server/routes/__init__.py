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
    resource_requirements,
    series,
    state,
    taskmanagers,
    threads,
    vertices,
)

ROUTES = (
    *cluster.ROUTES,
    *jobs.ROUTES,
    *checkpoints.ROUTES,
    *vertices.ROUTES,
    *metrics.ROUTES,
    *operations.ROUTES,
    *resource_requirements.ROUTES,
    *state.ROUTES,
    *series.ROUTES,
    *taskmanagers.ROUTES,
    *jobmanager.ROUTES,
    *threads.ROUTES,
    *programs.ROUTES,
    *documents.ROUTES,
    *page.ROUTES,
)
