"""What can go wrong beyond bad input."""


class NotDecomposableError(ValueError):
    """The penalties do not split into one term per player, so no linear program plans the game."""


class SolverError(RuntimeError):
    """A numerical solver stopped without a solution; the message holds its own status text."""
