"""Checks records, and what functions store, against the types that the program declared for them."""

from __future__ import annotations

from typing import Any

from headwater.common.errors import TypeMismatchError
from headwater.common.type_system.checker import compile_batch_checker
from headwater.common.type_system.information import TypeInformation
from headwater.operators.base import Operator, OperatorContext, Output


class TypeCheckOperator(Operator):
    """Passes records on, converted where the type asks for it (a tuple to a Row); stops the job where one does not fit.

    `checked_name` is the operator whose output is checked: the error is about its records, not about this check.
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
    """At the end of an epoch: stop the job if a function stored what does not fit the type its descriptor declares."""
    for backend in (context.keyed_backend, context.operator_backend):
        if backend is not None:
            try:
                backend.check_types()
            except TypeMismatchError as error:
                raise TypeMismatchError(f"operator '{context.name}', epoch {context.epoch}: {error}") from None
