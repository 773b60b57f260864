"""A requirements file is a promise of the program: what it lists must be installed."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from headwater.common.errors import ConfigurationError
from headwater.runtime.job.requirements import check_requirements

FULFILLED = """\
# ours

msgspec>=0.1  # and why
xxhash >= 3, \\
    < 1000 --hash=sha256:0123
-r other.txt
--index-url https://example.org/simple
-e ./here
./wheels/any-1.0-py3-none-any.whl
https://example.org/any.zip
cloudpickle @ https://example.org/cloudpickle.zip
no-such-package-anywhere; python_version < "3"
nor-this-one; extra == "docs"
pandas[parquet]<3
"""


def test_what_is_installed_passes(tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    (tmp_path / "other.txt").write_text("pyspark\n-r requirements.txt\n")
    file.write_text(FULFILLED)
    check_requirements(str(file))


def test_what_is_missing_is_named_with_the_cure(tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text("msgspec\nno-such-package-anywhere==1\nnor_this_one\n")
    with pytest.raises(ConfigurationError) as raised:
        check_requirements(str(file))
    text = str(raised.value)
    assert "not installed: no-such-package-anywhere==1, nor_this_one;" in text and f"pip install -r {file}" in text


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"requirements file .*gone\.txt cannot be read"):
        check_requirements(str(tmp_path / "gone.txt"))


@pytest.mark.parametrize("version", [">=1000", "==0.0.1", "<0.1,>=0.0", "!=1,>999"])
def test_what_is_of_another_version_is_named_with_both(tmp_path: Path, version: str) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text(f"xxhash{version}\nmsgspec\n")
    with pytest.raises(ConfigurationError) as raised:
        check_requirements(str(file))
    installed = metadata.version("xxhash")
    assert f"of another version: xxhash is {installed}, expected {SpecifierSet(version)}; run" in str(raised.value)
    assert "msgspec" not in str(raised.value)


def test_an_included_file_counts(tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    (tmp_path / "base.txt").write_text("no-such-package-anywhere>=2\n")
    for option in ("-r base.txt", "-rbase.txt", "--requirement=base.txt", "--requirement base.txt"):
        file.write_text(f"{option}\n")
        with pytest.raises(ConfigurationError, match=r"not installed: no-such-package-anywhere>=2;"):
            check_requirements(str(file))
    file.write_text("-r gone.txt\n")
    with pytest.raises(ConfigurationError, match=r"gone\.txt, which .*requirements\.txt includes, cannot be read"):
        check_requirements(str(file))


def test_a_line_that_is_no_requirement_is_named(tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text("msgspec\nnumpy=>1\n")
    with pytest.raises(ConfigurationError, match=r"requirements\.txt, line 2: 'numpy=>1' is no requirement"):
        check_requirements(str(file))
