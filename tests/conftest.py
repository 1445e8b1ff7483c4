"""One Hypothesis profile for all: the same examples in every run, and no clock."""

from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "sapwood",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=100,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("sapwood")
