"""One Hypothesis profile for all: the same examples in every run, and no clock."""

import signal

from hypothesis import HealthCheck, Phase, settings

# Who runs the tests in the background of a shell lets them ignore Ctrl-C, and all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

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
