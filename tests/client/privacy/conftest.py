"""No test fails for being slow on a busy machine; the same examples every time, unless a profile is asked for."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=True, max_examples=40)
settings.register_profile("slow", deadline=None, derandomize=True)  # 100, with pytest --slow
settings.register_profile("search", deadline=None, max_examples=1500)  # pytest --hypothesis-profile=search
settings.load_profile("steady")


def pytest_configure(config):
    if config.getoption("--slow") and not config.getoption("--hypothesis-profile"):
        settings.load_profile("slow")
