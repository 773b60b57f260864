"""Full disks have one error; other troubles keep theirs."""

from __future__ import annotations

import errno
import os
import pickle

import pytest

from headwater.common.errors import LocalDiskError
from headwater.common.machine.local_disk import room_for


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS])
def test_it_says_what_where_and_what_to_do(number: int) -> None:
    with pytest.raises(LocalDiskError) as caught, room_for("output", "/mnt/out", "make room there"):
        raise OSError(number, os.strerror(number), "/mnt/out/a")
    text = f"output cannot be written to /mnt/out: {os.strerror(number)}; make room there"
    assert str(caught.value) == text
    assert str(pickle.loads(pickle.dumps(caught.value))) == text


def test_other_errors_pass() -> None:
    with pytest.raises(PermissionError), room_for("output", "/mnt/out", "make room there"):
        raise PermissionError(errno.EACCES, "no")
    with pytest.raises(ValueError), room_for("output", "/mnt/out", "make room there"):
        raise ValueError
