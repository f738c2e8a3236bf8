"""Names of environment variables that the project's code never gets, even if the config asks for them."""

from __future__ import annotations

SECRET_WORDS = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "APIKEY", "API_KEY", "PRIVATE_KEY")
RUNNER_PREFIXES = ("GITHUB_", "ACTIONS_", "RUNNER_", "EXPORT_GATE_")
"""Variables of the CI runner and of the gate itself."""


def is_secret(name: str) -> bool:
    """Whether the name looks like that of a credential."""
    # TOKENIZERS_PARALLELISM, which many set for transformers, is none.
    return any(word in name.upper().replace("TOKENIZER", "") for word in SECRET_WORDS)


def may_be_passed(name: str) -> bool:
    """Whether a config can have the variable passed on."""
    return not is_secret(name) and not name.upper().startswith(RUNNER_PREFIXES)
