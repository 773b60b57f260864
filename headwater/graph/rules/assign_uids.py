from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import replace

from headwater.common.configuration import Configuration
from headwater.graph.logical_graph import LogicalGraph, Node


def assign_uids(graph: LogicalGraph, settings: Configuration) -> LogicalGraph:
    """Give every node its uid: the identity under which its state is found again.

    A uid that the user set stays unchanged. A generated uid is a hash of the node itself (kind and name) and of its
    inputs (the uids upstream, side tags and exchanges). So other branches, parallelism, settings and the user's code
    may change freely. It changes if the node is renamed, or if a node is added or removed upstream, up to the nearest
    node with a uid that the user set.
    """
    uids: dict[int, str] = {}
    twins: Counter[str] = Counter()
    for node in graph:
        uids[node.id] = _own_uid(node) or _generated_uid(node, uids, twins)
    return graph.map_nodes(lambda node: replace(node, uid=uids[node.id]))


def _own_uid(node: Node) -> str | None:
    return node.origin.uid_hash or node.origin.uid


def _generated_uid(node: Node, uids: dict[int, str], twins: Counter[str]) -> str:
    parts = [node.origin.kind, node.name]
    for edge in node.edges:
        exchange = "" if edge.exchange is None else edge.exchange.value
        parts.append(f"{edge.input_index}|{uids[edge.upstream]}|{edge.side_tag or ''}|{exchange}")
    structure = "\x1f".join(parts)
    # Twins (the same function name on the same input, twice) differ by the order in which they were built.
    twin = twins[structure]
    twins[structure] += 1
    digest = hashlib.blake2b(f"{structure}\x1f{twin}".encode(), digest_size=8).hexdigest()
    return f"{re.sub('[^a-z0-9]+', '-', node.origin.kind.lower())}-{digest}"
