"""Files that the user names for the output."""

from __future__ import annotations

from pathlib import Path

import pytest
import report_samples as samples

from export_gate.cli.options import save_results
from export_gate.wall.errors import UserError


def test_a_file_that_cannot_be_written_is_the_users_to_mend(tmp_path: Path):
    """`judge -o` and `merge -o` end as `report -o` does, not as if the gate had failed."""
    with pytest.raises(UserError, match=r"the results could not be written: Is a directory$"):
        save_results(samples.green(), tmp_path)
