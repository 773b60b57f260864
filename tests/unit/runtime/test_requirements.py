"""A requirements file is a promise of the program: what it lists must be installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.common.errors import ConfigurationError
from headwater.runtime.job.requirements import check_requirements


def test_what_is_installed_passes(tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text("# ours\n\nmsgspec>=0.1  # and why\n-r other.txt\n")
    check_requirements(str(file))


def test_what_is_missing_is_named_with_the_cure(tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text("msgspec\nno-such-package-anywhere==1\nnor_this_one\n")
    with pytest.raises(ConfigurationError) as raised:
        check_requirements(str(file))
    text = str(raised.value)
    assert "not installed: no-such-package-anywhere, nor_this_one;" in text and f"pip install -r {file}" in text


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"requirements file .*gone\.txt cannot be read"):
        check_requirements(str(tmp_path / "gone.txt"))
