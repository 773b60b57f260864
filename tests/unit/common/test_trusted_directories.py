"""Directories that others could put something into are not relied on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.storage.local_copies import LocalCopies
from headwater.common import trusted_directories
from headwater.common.configuration import Configuration
from headwater.common.errors import ConfigurationError
from headwater.common.trusted_directories import check_trusted, make_directory, private_directory
from headwater.runtime.job import start
from headwater.runtime.job.run_directory import RunDirectory
from headwater.runtime.job.start import prepare_start
from headwater.runtime.slot.directories import own_directory
from tests.unit.runtime.in_process_engine import plan_of
from tests.unit.runtime.test_slot import build

STRANGER = 54321

GiveAway = Callable[[Path], None]


@pytest.fixture
def give_away(monkeypatch: pytest.MonkeyPatch) -> GiveAway:
    """Makes a directory somebody else's: really, or by being somebody else who is not root."""

    def give(path: Path) -> None:
        if os.geteuid() == 0:
            os.chown(path, STRANGER, STRANGER)
        else:
            monkeypatch.setattr(os, "geteuid", lambda: STRANGER)

    return give


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that is in no common place, as far as the code under test is told."""
    monkeypatch.setattr(trusted_directories, "_is_common", lambda directory: False)
    return tmp_path


@pytest.fixture
def common(tmp_path: Path) -> Path:
    """Like /tmp."""
    directory = tmp_path / "common"
    directory.mkdir()
    directory.chmod(0o1777)
    return directory


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o002)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


# --- what headwater makes itself


@pytest.mark.usefixtures("umask")
def test_what_is_made_here_others_cannot_write_to(tmp_path: Path) -> None:
    CheckpointLayout(tmp_path / "a" / "b").create()
    made = [tmp_path / "a", *(tmp_path / "a").rglob("*")]
    assert {mode(path) for path in made} == {0o755}
    assert mode(private_directory(tmp_path / "x" / "y", "")) == 0o700
    assert mode(tmp_path / "x") == 0o755


def test_a_private_directory_is_nobody_elses(tmp_path: Path, give_away: GiveAway) -> None:
    directory = private_directory(tmp_path / "mine", "")
    assert private_directory(directory, "") == directory
    give_away(directory)
    with pytest.raises(ConfigurationError, match=r"mine must be a directory that only user \d+ can enter.*; do this"):
        private_directory(directory, "do this")


@pytest.mark.parametrize("bits", [0o770, 0o707, 0o750, 0o701])
def test_a_private_directory_lets_nobody_else_in(tmp_path: Path, bits: int) -> None:
    private_directory(tmp_path / "mine", "").chmod(bits)
    with pytest.raises(ConfigurationError, match=f"has mode 0{bits:o}"):
        private_directory(tmp_path / "mine", "")


def test_a_link_is_no_private_directory(tmp_path: Path) -> None:
    private_directory(tmp_path / "elsewhere", "")
    (tmp_path / "mine").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match="is a symbolic link"):
        private_directory(tmp_path / "mine", "")


def test_a_file_is_no_private_directory(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(ConfigurationError, match="is no directory"):
        private_directory(tmp_path / "mine", "")


def test_names_in_the_temporary_directory_cannot_be_taken_first(
    common: Path, give_away: GiveAway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(common))
    name = Path(own_directory())
    assert mode(name) == 0o700 and name.parent == common
    give_away(name)
    (common / f"headwater-{os.geteuid()}").mkdir(exist_ok=True)
    with pytest.raises(ConfigurationError, match="TMPDIR be a directory of your own"):
        own_directory()


def test_the_run_directory_and_local_copies_are_private(tmp_path: Path) -> None:
    run = RunDirectory(str(tmp_path / "state"))
    run.create()
    assert mode(run.path) == 0o700
    run.path.chmod(0o770)
    with pytest.raises(ConfigurationError, match=r"choose another headwater\.state\.dir"):
        run.cards()
    copies = LocalCopies(tmp_path / "copies", "memory://x", 1000)
    draft = copies.draft()
    draft.write_bytes(b"")
    copies.keep("snapshots/a", draft)
    assert copies.find("snapshots/a") is not None
    copies.directory.chmod(0o770)
    with pytest.raises(ConfigurationError, match="local-backup"):
        copies.find("snapshots/a")


# --- what people name


def test_an_own_directory_in_a_common_place_is_trusted(common: Path) -> None:
    make_directory(common / "a" / "job" / "manifests")
    assert check_trusted(common / "a" / "job", "checkpoint directory", ["manifests"]) is None
    assert check_trusted(common / "not" / "there", "checkpoint directory") is None


@pytest.mark.parametrize("whose", ["a", "a/job", "a/job/manifests"])
def test_another_users_directory_in_a_common_place_is_refused(common: Path, give_away: GiveAway, whose: str) -> None:
    make_directory(common / "a" / "job" / "manifests")
    give_away(common / whose)
    with pytest.raises(
        ConfigurationError, match=r"checkpoint directory .*/a/job is not this user's alone: .*belongs to"
    ):
        check_trusted(common / "a" / "job", "checkpoint directory", ["manifests"])


def test_a_common_place_of_another_user_in_a_common_place_is_refused(common: Path, give_away: GiveAway) -> None:
    make_directory(common / "a" / "job")
    (common / "a").chmod(0o1777)
    give_away(common / "a")
    with pytest.raises(ConfigurationError, match="belongs to user"):
        check_trusted(common / "a" / "job", "checkpoint directory")


@pytest.mark.parametrize("whose", ["a", "a/job", "a/job/manifests"])
@pytest.mark.parametrize("bits", [0o757, 0o1777, 0o777])
def test_a_writable_directory_in_a_common_place_is_refused(common: Path, whose: str, bits: int) -> None:
    make_directory(common / "a" / "job" / "manifests")
    (common / whose).chmod(bits)
    if (whose, bits) == ("a", 0o1777):  # another /tmp in /tmp
        assert check_trusted(common / "a" / "job", "checkpoint directory", ["manifests"]) is None
        return
    with pytest.raises(
        ConfigurationError, match=f"has mode {bits:04o}, in .*everybody can make directories.*chmod -R go-w"
    ):
        check_trusted(common / "a" / "job", "checkpoint directory", ["manifests"])


def test_the_common_place_itself_is_refused(common: Path) -> None:
    with pytest.raises(ConfigurationError, match="has mode 1777"):
        check_trusted(common, "checkpoint directory")


def test_a_link_in_a_common_place_is_refused(common: Path, tmp_path: Path) -> None:
    make_directory(tmp_path / "elsewhere")
    (common / "job").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match="is a symbolic link"):
        check_trusted(common / "job", "checkpoint directory")


def test_a_link_into_a_common_place_is_followed(common: Path, tmp_path: Path) -> None:
    make_directory(common / "job")
    (common / "job").chmod(0o777)
    (tmp_path / "link").symlink_to(common / "job")
    with pytest.raises(ConfigurationError, match="everybody can make directories"):
        check_trusted(tmp_path / "link", "checkpoint directory")


def test_a_temporary_directory_without_the_sticky_bit_is_common_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an emptyDir of Kubernetes is."""
    tmp_path.chmod(0o777)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    make_directory(tmp_path / "job")
    assert check_trusted(tmp_path / "job", "checkpoint directory") is None
    (tmp_path / "job").chmod(0o777)
    with pytest.raises(ConfigurationError):
        check_trusted(tmp_path / "job", "checkpoint directory")


def test_elsewhere_it_may_be_meant_and_is_said(home: Path, give_away: GiveAway) -> None:
    make_directory(home / "shared")
    assert check_trusted(home / "shared", "checkpoint directory") is None
    (home / "shared").chmod(0o777)
    warning = check_trusted(home / "shared", "checkpoint directory")
    assert warning is not None and "has mode 0777" in warning and "Unless that is meant" in warning
    (home / "shared").chmod(0o755)
    give_away(home / "shared")
    assert "belongs to user" in (check_trusted(home / "shared", "checkpoint directory") or "")


def test_a_group_of_one_is_not_others(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_directory(home / "job")
    (home / "job").chmod(0o775)
    monkeypatch.setattr(trusted_directories, "_is_own_group", lambda gid: True)
    assert check_trusted(home / "job", "checkpoint directory") is None
    monkeypatch.setattr(trusted_directories, "_is_own_group", lambda gid: False)
    assert check_trusted(home / "job", "checkpoint directory") is not None


# --- a job


def test_a_job_does_not_start_in_another_users_directory(tmp_path: Path, common: Path, give_away: GiveAway) -> None:
    make_directory(common / "job")
    give_away(common / "job")
    settings = Configuration.from_dict({"execution.checkpointing.dir": str(common / "job")})
    with pytest.raises(ConfigurationError, match="is not this user's alone"):
        prepare_start(plan_of(build), settings)
    assert list((common / "job").iterdir()) == []


def test_a_job_in_a_shared_directory_warns_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "_said", set())
    make_directory(home / "job")
    (home / "job").chmod(0o777)
    settings = Configuration.from_dict({"execution.checkpointing.dir": str(home / "job")})
    with pytest.warns(UserWarning, match="has mode 0777") as said:
        prepare_start(plan_of(build), settings).release()
    assert len(said) == 1
