"""`headwater config`: what can be set."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from headwater.cli.usage import Parser, UsageError, nearest
from headwater.common.config_options import OPTIONS, ConfigOption


def config(arguments: Sequence[str]) -> int:
    """List the options, or those whose key has one of the given words in it."""
    parser = Parser(prog="headwater config", description="List the settings. Set one with -D key=value.")
    parser.add_argument("word", nargs="*", help="only settings with this word in their key")
    words = parser.parse_args(list(arguments)).word
    chosen = [option for option in OPTIONS if not words or any(word in option.key for word in words)]
    if not chosen:
        keys = [option.key for option in OPTIONS]
        raise UsageError(f"headwater config: no setting has '{' '.join(words)}' in its key{nearest(words[0], keys)}")
    print("\n\n".join(described(option) for option in chosen))
    return 0


def described(option: ConfigOption[Any]) -> str:
    """One option as a paragraph."""
    facts = [
        f"type: {option.type_name}",
        f"default: {option.shown_default()}",
        f"environment: {option.environment_variable}",
    ]
    if option.former_keys:
        facts.append("also: " + ", ".join(option.former_keys))
    text = textwrap.wrap(option.description, width=100, initial_indent="    ", subsequent_indent="    ")
    return "\n".join([option.key, *text, *(f"    {fact}" for fact in facts)])
