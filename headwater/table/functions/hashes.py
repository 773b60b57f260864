"""Hashes of strings, in hexadecimal."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from headwater.common.errors import ComputationError
from headwater.table.functions.definition import FunctionDefinition, SparkText
from headwater.table.functions.kernels import row_by_row, spark
from headwater.table.functions.signatures import INT32, TEXT, call
from headwater.table.types import logical as t

FAMILY = "hashes"


def _digest(name: str) -> Callable[[str], str]:
    algorithm: Any = getattr(hashlib, name)
    return lambda value: algorithm(value.encode()).hexdigest()


def _hash(name: str, algorithm: str, length: int, spark_text: SparkText | None) -> FunctionDefinition:
    return FunctionDefinition(
        name,
        FAMILY,
        call(TEXT, result=t.CharType(length=length)),
        f"{name}(s)",
        f"The {name} of the string's UTF-8 bytes, {length} hexadecimal digits.",
        compute=row_by_row(_digest(algorithm)),
        spark_text=spark_text,
    )


def _sha2(value: str, bits: int) -> str:
    if bits not in (224, 256, 384, 512):
        raise ComputationError(f"SHA2 has 224, 256, 384 or 512 bits, found {bits}")
    return _digest(f"sha{bits}")(value)


FUNCTIONS = (
    _hash("MD5", "md5", 32, spark("md5(CAST({0} AS BINARY))")),
    _hash("SHA1", "sha1", 40, spark("sha1(CAST({0} AS BINARY))")),
    _hash("SHA224", "sha224", 56, spark("sha2(CAST({0} AS BINARY), 224)")),
    _hash("SHA256", "sha256", 64, spark("sha2(CAST({0} AS BINARY), 256)")),
    _hash("SHA384", "sha384", 96, spark("sha2(CAST({0} AS BINARY), 384)")),
    _hash("SHA512", "sha512", 128, spark("sha2(CAST({0} AS BINARY), 512)")),
    FunctionDefinition(
        "SHA2",
        FAMILY,
        call(TEXT, INT32, result=t.VarCharType(length=128)),
        "SHA2(s, bits)",
        "The SHA-2 of 224, 256, 384 or 512 bits.",
        compute=row_by_row(_sha2),
    ),
)
