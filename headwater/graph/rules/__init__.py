"""The planner's rules, one file each: file = function. `RULES` is the order they run in."""

from __future__ import annotations

from headwater.graph.logical_graph import Rule
from headwater.graph.rules.assign_stages import assign_stages
from headwater.graph.rules.assign_uids import assign_uids
from headwater.graph.rules.chain_operators import chain_operators
from headwater.graph.rules.check_picklable import check_picklable
from headwater.graph.rules.check_uids import check_uids
from headwater.graph.rules.choose_exchanges import choose_exchanges
from headwater.graph.rules.cut_chains import cut_chains
from headwater.graph.rules.insert_type_checks import insert_type_checks
from headwater.graph.rules.limit_inputs import limit_inputs
from headwater.graph.rules.require_sink import require_sink
from headwater.graph.rules.resolve_parallelism import resolve_parallelism

RULES: tuple[Rule, ...] = (
    require_sink,
    limit_inputs,
    resolve_parallelism,
    # Identity comes before anything that depends on settings: a uid must not change with a setting.
    assign_uids,
    check_uids,
    check_picklable,
    cut_chains,
    insert_type_checks,
    choose_exchanges,
    assign_stages,
    chain_operators,
)

__all__ = ["RULES"]
