"""Options and what is done with them: the one module to import. PyFlink's names, and all options of headwater."""

from __future__ import annotations

from headwater.common.config.job_options import *  # noqa: F403 every option, by the name it is declared with
from headwater.common.config.option import ConfigOption as ConfigOption
from headwater.common.config.option import ConfigOptions as ConfigOptions
from headwater.common.config.resolution import option_of as option_of
from headwater.common.config.resolution import resolve as resolve
from headwater.common.config.resolution import spark_settings as spark_settings
from headwater.common.config.resolution import validate as validate
