# SPDX-License-Identifier: Apache-2.0
"""member.py - what a worker knows of the others."""
from __future__ import annotations

from typing import NamedTuple


class Member(NamedTuple):
    """A worker of the group."""

    id: int
    name: str


class View(NamedTuple):
    """The members of the group at one version; in a static group there is one, version 1."""

    version: int
    members: list[Member]
