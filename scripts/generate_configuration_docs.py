"""Writes docs/configuration.md from the options in headwater.common.config_options.

python scripts/generate_configuration_docs.py           write it
python scripts/generate_configuration_docs.py --check   exit 1 if it is not current
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from headwater.common.config_options import OPTIONS, ConfigOption  # noqa: E402

PAGE = ROOT / "docs" / "configuration.md"

INTRODUCTION = """\
# Configuration

<!-- Made from headwater/common/config/job_options.py: change it there, then `make docs`. -->

A setting comes from, in this order: what the program sets, its environment variable, its default.

```python
from headwater.common import Configuration
from headwater.datastream import StreamExecutionEnvironment

configuration = Configuration()
configuration.set_string("headwater.epoch.duration", "200 ms")
env = StreamExecutionEnvironment.get_execution_environment(configuration)
```

or `HEADWATER_EPOCH_DURATION="200 ms" python job.py`.

Keys are Flink's where Flink has the setting, and begin with `headwater.` otherwise. Keys that begin with `spark.` go to
Spark as they are. A bad value is an error before Spark starts; an unknown key is a warning that names the nearest known
one. Durations are written as `500 ms`, `10 s`, `5 min`, `1 h`, `2 d`.
"""


def section(option: ConfigOption[Any]) -> str:
    facts = [
        f"- type: {option.type_name.replace(' | ', ', ')}",
        f"- default: {option.shown_default('`')}",
        f"- environment: `{option.environment_variable}`",
    ]
    if option.former_keys:
        facts.append("- also understood: " + ", ".join(f"`{key}`" for key in option.former_keys))
    return f"## `{option.key}`\n\n{option.description}\n\n" + "\n".join(facts) + "\n"


def page() -> str:
    contents = "\n".join(f"| `{option.key}` | {option.shown_default('`')} |" for option in OPTIONS)
    table = f"| key | default |\n|---|---|\n{contents}\n"
    return "\n".join((INTRODUCTION, table, *(section(option) for option in OPTIONS)))


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page():
            return 0
        print(f"{PAGE.relative_to(ROOT)} is not current: run `make docs`", file=sys.stderr)
        return 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
