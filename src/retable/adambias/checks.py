"""Argument checks that the modules here share; each raises one line: name, value, range."""

import math
from numbers import Integral

PLACEMENTS = ("inside", "outside")


def check_decay(name: str, value: float) -> None:
    """A momentum parameter (β or ρ) lies in [0, 1)."""
    if not 0.0 <= value < 1.0:
        raise ValueError(f"{name} is {value}, allowed: 0 <= {name} < 1")


def check_nonnegative(name: str, value: float) -> None:
    """A finite number >= 0."""
    if not (value >= 0.0 and math.isfinite(value)):
        raise ValueError(f"{name} is {value}, allowed: finite and {name} >= 0")


def check_positive(name: str, value: float, why: str = "") -> None:
    """A finite number > 0; `why` explains in the message what goes wrong otherwise."""
    if not (value > 0.0 and math.isfinite(value)):
        raise ValueError(f"{name} is {value}, allowed: finite and {name} > 0{why}")


def check_count(name: str, value: int, least: int) -> None:
    """A whole number that is at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} is {value}, allowed: whole numbers >= {least}")


def check_placement(value: str) -> None:
    """Where ε stands: inside or outside the square root."""
    if value not in PLACEMENTS:
        raise ValueError(f"eps_placement is {value!r}, allowed: {', '.join(PLACEMENTS)}")


def check_order(value: int) -> None:
    """Order of the flow: 1 (plain) or 2 (corrected)."""
    if value not in (1, 2):
        raise ValueError(f"order is {value}, allowed: 1 (plain flow) or 2 (corrected flow)")
