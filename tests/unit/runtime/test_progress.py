from __future__ import annotations

from headwater.runtime.job.progress import JobProgress


class Clock:
    seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def run_epochs(progress: JobProgress, clock: Clock, number: int, seconds: float, records: int) -> None:
    for _ in range(number):
        clock.seconds += seconds
        progress.epoch_ms = seconds * 1000
        progress.epoch_done(records)


def test_the_rate_is_that_of_the_last_seconds() -> None:
    progress = JobProgress(clock=(clock := Clock()))
    run_epochs(progress, clock, 10, 1, 5000)
    run_epochs(progress, clock, 10, 1, 300)
    assert progress.records_per_second == 300
    assert (progress.records_in, progress.epochs) == (53_000, 20)


def test_one_epoch_is_no_rate() -> None:
    progress = JobProgress(clock=(clock := Clock()))
    run_epochs(progress, clock, 1, 1, 300)
    assert progress.records_per_second == 0


def test_it_falls_to_0_when_the_job_has_nothing_to_read() -> None:
    progress = JobProgress(clock=(clock := Clock()))
    run_epochs(progress, clock, 10, 1, 300)
    clock.seconds += 4
    assert progress.as_dict()["records_per_second"] == 300
    clock.seconds += 2
    assert progress.as_dict()["records_per_second"] == 0


def test_it_falls_to_0_while_epochs_read_nothing() -> None:
    progress = JobProgress(clock=(clock := Clock()))
    run_epochs(progress, clock, 10, 1, 300)
    run_epochs(progress, clock, 7, 1, 0)
    assert progress.records_per_second == 0


def test_it_stands_while_a_long_epoch_is_under_way() -> None:
    progress = JobProgress(clock=(clock := Clock()))
    run_epochs(progress, clock, 3, 30, 3000)
    clock.seconds += 31
    assert progress.records_per_second == 100
    clock.seconds += 30
    assert progress.records_per_second == 0


def test_it_begins_anew_where_the_job_goes_back() -> None:
    progress = JobProgress(clock=(clock := Clock()))
    run_epochs(progress, clock, 3, 1, 300)
    progress.went_to(0, {"records_in": 100})
    assert progress.records_per_second == 0
    run_epochs(progress, clock, 2, 1, 300)
    assert (progress.records_per_second, progress.records_in) == (300, 700)
