"""Gives the wheel the platform of the program that is in it: it runs with any Python 3 there. Without a program it runs everywhere."""

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Platform(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        platform = os.environ["SWAGWRAP_WHEEL_PLATFORM"]
        build_data["pure_python"] = platform == "any"
        build_data["tag"] = "py3-none-" + platform
