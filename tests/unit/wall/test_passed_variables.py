"""Names of environment variables that project code may get."""

from __future__ import annotations

import pytest

from export_gate.wall.variables import is_secret, may_be_passed


@pytest.mark.parametrize("name", ["HF_TOKEN", "npm_token", "TOKENIZERS_TOKEN", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY"])
def test_a_credential_is_never_passed(name: str):
    """In any case, and wherever the word is in the name."""
    assert is_secret(name)
    assert not may_be_passed(name)


@pytest.mark.parametrize("name", ["TOKENIZERS_PARALLELISM", "TOKENIZER_PATH", "CKPT"])
def test_a_tokenizer_is_no_token(name: str):
    """Its variables choose how a model reads text."""
    assert may_be_passed(name)
