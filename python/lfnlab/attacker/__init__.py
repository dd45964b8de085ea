"""The attacker: searches paths, losses and cross traffic that hurt a law more than others."""

from lfnlab.attacker.drawn import draws, on_draws
from lfnlab.attacker.elsewhere import Elsewhere, confirm
from lfnlab.attacker.harm import SAYS, Figures
from lfnlab.attacker.space import KEYS, in_words
from lfnlab.attacker.weaknesses import Attack, Weakness, attack

__all__ = [
    "KEYS",
    "SAYS",
    "Attack",
    "Elsewhere",
    "Figures",
    "Weakness",
    "attack",
    "confirm",
    "draws",
    "in_words",
    "on_draws",
]
