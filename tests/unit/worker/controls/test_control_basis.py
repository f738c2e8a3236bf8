import torch
from control_samples import BATCH, contract, tensor

from export_gate.wall.contract import Dim, ModelContract
from export_gate.worker.controls.basis import affine_cases, packs_rows
from export_gate.worker.controls.build import reference_sizes


def cases(model: ModelContract):
    """The basis at the reference sizes."""
    return affine_cases(model, reference_sizes(model))


def spans(points: torch.Tensor):
    """The points are d+1 affinely independent ones: their differences have full rank."""
    points = points.double().unique(dim=0)
    return torch.linalg.matrix_rank(points[1:] - points[0]).item() == points.shape[1] == len(points) - 1


def test_the_points_are_zero_and_the_unit_vectors():
    """For d = 3: the origin and three unit vectors, one call each without a batch."""
    found = cases(contract(x=tensor("float32", 3, range=(-1, 1))))
    assert [case.make()["x"].tolist() for case in found] == [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert [case.name for case in found] == ["basis-1", "basis-2", "basis-3", "basis-4"]
    assert {case.group for case in found} == {"affine"}


def test_rows_carry_points_where_a_dim_leads():
    """With a batch the d+1 points share calls; rows beyond the last point are the origin."""
    model = contract(BATCH, x=tensor("float32", "batch", 2, 10, range=(-4, 4)))
    found = cases(model)
    assert [case.name for case in found] == ["basis-1@batch=16", "basis-2@batch=16"]
    points = torch.cat([case.make()["x"].reshape(-1, 20) for case in found])
    assert torch.equal(points[:21], torch.cat([torch.zeros(1, 20), torch.eye(20)]))
    assert not points[21:].any()


def test_several_inputs_share_one_space():
    """The joint space of x and y has the sum of their dimensions."""
    model = contract(BATCH, x=tensor("float32", "batch", 2), y=tensor("float64", "batch", 3))
    (case,) = cases(model)
    values = case.make()
    assert spans(torch.cat([values["x"].double(), values["y"]], dim=1))
    assert (case.sizes["batch"], values["y"].dtype) == (6, torch.float64)


def test_points_stay_inside_the_range():
    """In [2, 3] the simplex is moved, and the name says so."""
    (case,) = cases(contract(BATCH, x=tensor("float32", "batch", 4, range=(2, 3))))
    points = case.make()["x"]
    assert case.name == "basis-scaled-1@batch=5"
    assert (points.min().item(), points.max().item()) == (2, 3)
    assert spans(points)


def test_narrow_and_negative_ranges_have_a_simplex():
    """Whatever interval there is, d+1 independent points are in it."""
    for span in ((0, 0.25), (-0.5, 0), (-3, -2.5), (-0.1, 0.1), (1000, 4000)):
        points = cases(contract(BATCH, x=tensor("float32", "batch", 3, range=span)))[0].make()["x"].double()
        assert spans(points), span
        assert span[0] <= points.min().item(), span
        assert points.max().item() <= span[1], span


def test_allowed_values_make_the_simplex():
    """With `values: [-1, 5]` the points are made of these two."""
    points = cases(contract(BATCH, x=tensor("float32", "batch", 3, values=(-1, 5))))[0].make()["x"]
    assert spans(points)
    assert set(points.flatten().tolist()) == {-1, 5}


def test_there_are_no_points_for_what_is_not_a_real_space():
    """Integers, bools, complex numbers, single values and empty or very large inputs have no basis."""
    assert cases(contract(x=tensor("int64", 3))) == ()
    assert cases(contract(x=tensor("float32", 3), m=tensor("bool", 3))) == ()
    assert cases(contract(x=tensor("complex64", 3))) == ()
    assert cases(contract(x=tensor("float32", 3, range=(2, 2)))) == ()
    assert cases(contract(x=tensor("float32", 0))) == ()
    assert cases(contract(BATCH, x=tensor("float32", "batch", 4097))) == ()
    assert cases(contract(x=tensor("float32", 600))) == ()


def test_only_a_common_first_axis_carries_points():
    """A dim that appears elsewhere, scaled, static, or not in every input keeps one point per call."""
    assert packs_rows(contract(BATCH, x=tensor("float32", "batch", 3))) == "batch"
    assert packs_rows(contract(BATCH, x=tensor("float32", "batch", "batch"))) is None
    assert packs_rows(contract(BATCH, x=tensor("float32", "2*batch", 3))) is None
    assert packs_rows(contract(BATCH, x=tensor("float32", "batch", 3), y=tensor("float32", 3))) is None
    static = Dim(name="batch", min=2, max=16, mode="static")
    assert packs_rows(contract(static, x=tensor("float32", "batch", 3))) is None


def test_each_call_is_fresh():
    """A model that writes into a basis point does not change the next call."""
    (case,) = cases(contract(BATCH, x=tensor("float32", "batch", 3)))
    case.make()["x"].add_(1)
    assert case.make()["x"].min().item() == 0
