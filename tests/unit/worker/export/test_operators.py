"""Operators are listed again only where there are others."""

from __future__ import annotations

import torch
from torch._export import utils

from export_gate.worker.export.operators import _listing, list_operators


def test_operators_are_listed_again_where_a_library_has_registered_others():
    """Until then, torch has them all."""
    listings: list[int] = []
    list_others = _listing(lambda: listings.append(1))
    list_others()
    list_others()
    assert listings == [1]
    library = torch.library.Library("export_gate_listed", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")
    list_others()
    list_others()
    assert listings == [1, 1]


def test_a_library_of_the_project_is_among_the_operators():
    """Also where it is registered after the first listing."""
    list_operators()
    list_operators()
    library = torch.library.Library("export_gate_found", "DEF")
    library.define("thrice(Tensor x) -> Tensor")
    library.impl("thrice", lambda x: 3 * x, "CompositeImplicitAutograd")
    assert torch.ops.export_gate_found.thrice.default in utils._collect_all_valid_cia_ops()
