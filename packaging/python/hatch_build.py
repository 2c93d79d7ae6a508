"""Gives the wheel the platform of the program that is in it: it runs with any Python 3 there."""

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Platform(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-" + os.environ["SWAGWRAP_WHEEL_PLATFORM"]
