"""Settings of the robust Markov games' experiments."""

from pydantic import Field

from retable.common.settings import PaperConfig, Settings, StepSettings


class EquivalenceSettings(StepSettings):
    """Robust values by programs over the sets against the regularised game's closed forms."""

    sizes: tuple[int, ...] = (2, 3, 5, 8)
    games: int = Field(20, ge=1, description="games a set")
    policies: int = Field(10, ge=1, description="policy pairs a game")
    radius: tuple[float, float] = Field((0.1, 2.0), description="range of the radii")
    members: int = Field(2000, ge=1, description="sampled members where the set is no polytope")


class PlanningSettings(StepSettings):
    """Planning on random Markov games of five families."""

    states: int = Field(5, ge=2)
    actions: tuple[int, int] = (4, 3)
    horizon: int = Field(6, ge=1)
    box_states: int = Field(4, ge=2, description="states of the games with mixed-integer stages")
    box_actions: int = Field(3, ge=2)
    box_horizon: int = Field(5, ge=1)


class RobustnessSettings(StepSettings):
    """Robust, nominal, entropy-regularised and uniform policies as the radius grows."""

    size: int = Field(6, ge=2)
    radii: tuple[float, ...] = (0, 0.1, 0.25, 0.5, 1, 2, 5)
    members: int = Field(10_000, ge=1, description="sampled members of the set")


class HardnessSettings(StepSettings):
    """Bimatrix games as zero-sum games with uncertain rewards, and their equilibria."""

    games: int = Field(50, ge=1)
    size: int = Field(4, ge=2, le=6)
    sizes: tuple[int, ...] = (2, 3, 4, 5, 6)
    games_per_size: int = Field(10, ge=1)


class ScalingSettings(StepSettings):
    """Simplex iterations over the number of actions; linear programs over states and steps."""

    sizes: tuple[int, ...] = (4, 8, 16, 32, 64, 128, 256)
    games: int = Field(3, ge=1, description="games a size")
    states: tuple[int, ...] = (2, 4, 8, 16, 32)
    horizons: tuple[int, ...] = (2, 4, 8, 16, 32)
    fixed: int = Field(8, ge=1, description="horizon, or number of states, while the other varies")
    actions: int = Field(4, ge=2)


class ReadingsSettings(StepSettings):
    """The readings of 'L1 and L-infinity balls', and whether their penalty splits."""

    policies: int = Field(1000, ge=2)
    games: int = Field(20, ge=1)
    sizes: tuple[int, ...] = (2, 3, 5, 8)
    radius: tuple[float, float] = (0.1, 2.0)


class ShortcutSettings(StepSettings):
    """The recursion that takes every stage for zero-sum, with equal and unequal radii."""

    states: int = Field(4, ge=2)
    actions: int = Field(3, ge=2)
    horizon: int = Field(5, ge=1)
    scales: tuple[float, ...] = (0, 0.25, 0.5, 1, 2)


class RunSettings(Settings):
    """One part an experiment."""

    equivalence: EquivalenceSettings = EquivalenceSettings()
    planning: PlanningSettings = PlanningSettings()
    robustness: RobustnessSettings = RobustnessSettings()
    hardness: HardnessSettings = HardnessSettings()
    scaling: ScalingSettings = ScalingSettings()
    readings: ReadingsSettings = ReadingsSettings()
    shortcut: ShortcutSettings = ShortcutSettings()


class SpeedSettings(StepSettings):
    """Enumeration of all equilibria against the linear program, timed side by side."""

    sizes: tuple[int, ...] = (2, 3, 4, 5, 6)
    repeats: int = Field(5, ge=1)


class Config(PaperConfig):
    """The configuration of the paper."""

    run: RunSettings = RunSettings()
    speed: SpeedSettings = SpeedSettings()
