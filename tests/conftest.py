"""Settings for all tests."""

from hypothesis import settings

# No time limits: first calls compile, and machines are noisy.
settings.register_profile("no_deadline", deadline=None)
settings.load_profile("no_deadline")
