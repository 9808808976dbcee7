"""Settings for all tests."""

import os

from hypothesis import settings

# What commands print is compared, whether or not they have to compile.
os.environ["TREECRF_QUIET"] = "1"

# No time limits: first calls compile, and machines are noisy.
settings.register_profile("no_deadline", deadline=None)
settings.load_profile("no_deadline")
