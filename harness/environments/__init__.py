"""Environments of the cells: locked, built, reused, adopted and evicted (with uv).

Use `EnvironmentStore`: it owns a folder in which environments stand by their content.
"""

from harness.environments.model import (
    DEFAULT_INDEX,
    PYTORCH_CPU_INDEX,
    Environment,
    EnvironmentFailed,
    StandingEnvironment,
    StoreSize,
)
from harness.environments.store import EnvironmentStore

__all__ = [
    "DEFAULT_INDEX",
    "PYTORCH_CPU_INDEX",
    "Environment",
    "EnvironmentFailed",
    "EnvironmentStore",
    "StandingEnvironment",
    "StoreSize",
]
