"""Does what people ask of a running job, between two epochs."""

from __future__ import annotations

import logging
import time

from headwater.checkpoint.savepoint.savepoint import check_target
from headwater.common.errors import CheckpointError, FencedError, HeadwaterError
from headwater.runtime.epoch.decisions import CHECKPOINT, DRAIN
from headwater.runtime.job.coordinator import Coordinator
from headwater.runtime.job.endings import GivenUpError, RescaleAsked, StoppedWithSavepoint, WentBackError
from headwater.runtime.job.fingerprint import parallelisms
from headwater.runtime.job.replays import replay
from headwater.runtime.job.requests import CheckpointRequest, ReplayRequest, Request, RescaleRequest, SavepointRequest

log = logging.getLogger(__name__)


def serve_requests(coordinator: Coordinator) -> None:
    """Serve all requests. Raises `StoppedWithSavepoint` or `RescaleAsked` where the epochs end here."""
    coordinator.checkpoints.give_up_late()
    while coordinator.requests:
        request = coordinator.requests.take()
        request.since_ms = coordinator.checkpoints.clock_ms()
        try:
            _serve(coordinator, request)
        except WentBackError:
            coordinator.requests.put_back(request)
            raise
        except GivenUpError:
            coordinator.checkpoints.give_up(request)


def _serve(coordinator: Coordinator, request: Request) -> None:
    if isinstance(request, RescaleRequest):
        _rescale(coordinator, request)
    elif isinstance(request, CheckpointRequest):
        coordinator.settle_checkpoint(request)
        coordinator.checkpoint_now(CHECKPOINT, request)
        request.done.set_result(coordinator.epoch)
    elif isinstance(request, ReplayRequest):
        replay(coordinator, request)
    elif request.stop:
        _stop(coordinator, request)
    else:
        coordinator.checkpoints.request(request)


def _rescale(coordinator: Coordinator, request: RescaleRequest) -> None:
    if request.plan is not None and parallelisms(request.plan) == parallelisms(coordinator.plan):
        request.done.set_result(0.0)  # perhaps because of an earlier request
        return
    started = time.monotonic()
    coordinator.settle_checkpoint(request)
    coordinator.checkpoint_now(CHECKPOINT, request)
    raise RescaleAsked(request, started)


def _stop(coordinator: Coordinator, request: SavepointRequest) -> None:
    try:
        check_target(request.target)  # before anything is drained
    except CheckpointError as error:
        request.fail(CheckpointError(f"{error}. The job goes on"))
        return
    checkpoints = coordinator.checkpoints
    coordinator.settle_checkpoint(request)
    if request not in checkpoints.savepoints:  # it is there already if the job went back meanwhile
        checkpoints.savepoints.append(request)
    if request.drain:
        coordinator.checkpoint_now(DRAIN)  # a drained job cannot go on, so this wait has no limit
    else:
        coordinator.checkpoint_now(CHECKPOINT, request)
    try:
        checkpoints.copied(request)
    except FencedError:
        raise
    except HeadwaterError as error:
        if request.drain:
            raise
        log.warning("the job was not stopped: %s", error)
        return
    raise StoppedWithSavepoint
