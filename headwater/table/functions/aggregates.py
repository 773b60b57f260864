from headwater.table.functions.definition import FunctionDefinition
FUNCTIONS: tuple[FunctionDefinition, ...] = ()
