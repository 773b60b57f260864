"""Checks records, and the values that functions store, against their declared types."""

from __future__ import annotations

from typing import Any

from headwater.common.errors import TypeMismatchError
from headwater.common.type_system.checker import compile_batch_checker
from headwater.common.type_system.information import TypeInformation
from headwater.operators.base import Operator, OperatorContext, Output


class TypeCheckOperator(Operator):
    """Passes records on, converted if the type requires it (a tuple to a Row). A record that does not fit is an error.

    `checked_name` is the operator whose output is checked. Errors name that operator.
    """

    def __init__(self, type_info: TypeInformation, checked_name: str | None = None) -> None:
        self.type_info = type_info
        self.checked_name = checked_name

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self._check = compile_batch_checker(self.type_info)

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        try:
            checked = self._check(values)
        except TypeMismatchError as error:
            name = self.checked_name or self.context.name
            raise TypeMismatchError(
                f"operator '{name}', epoch {self.context.epoch}: its output does not fit the declared type "
                f"{self.type_info!r}: {error}"
            ) from None
        self.output.emit(checked, timestamps)


def check_state_types(context: OperatorContext) -> None:
    """Raise if a function stored a value that does not fit its descriptor's type. Called at the end of an epoch."""
    for backend in (context.keyed_backend, context.operator_backend):
        if backend is not None:
            try:
                backend.check_types()
            except TypeMismatchError as error:
                raise TypeMismatchError(f"operator '{context.name}', epoch {context.epoch}: {error}") from None
