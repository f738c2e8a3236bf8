import torch

from export_gate.worker.controls.layout import channels_last, clone, noncontiguous


def test_a_clone_keeps_strides_and_shares_nothing():
    """Channels-last, sliced, transposed and expanded tensors keep their strides in a copy of their own."""
    base = torch.arange(2 * 3 * 4 * 8.0).reshape(2, 3, 4, 8)
    for tensor in (
        base,
        base.to(memory_format=torch.channels_last),
        base[..., ::2],
        base[:, 1:, 1:3],
        base.transpose(1, 3),
        base[:1].expand(5, 3, 4, 8),
        base[..., :0],
        torch.tensor(3.0),
    ):
        copy = clone(tensor)
        assert copy.stride() == tensor.stride()
        assert torch.equal(copy, tensor)
        before = tensor.clone()
        copy.zero_() if 0 not in copy.stride() else copy[0].zero_()
        assert torch.equal(tensor, before)


def test_a_clone_resolves_conjugates():
    """A lazily conjugated tensor is copied with its values."""
    tensor = torch.tensor([1 + 2j, 3 - 1j]).conj()
    assert torch.equal(clone(tensor), tensor)


def test_containers_are_copied_as_they_are():
    """Lists, tuples and dicts keep their kind; constants are passed on."""
    tensor = torch.ones(2)
    copy = clone({"a": [tensor, 3], "b": (tensor, "x", None)})
    assert isinstance(copy["a"], list)
    assert isinstance(copy["b"], tuple)
    assert copy["a"][0] is not tensor
    assert copy["b"][1:] == ("x", None)


def test_other_layouts_have_the_same_values():
    """The non-contiguous and channels-last variants differ in strides alone."""
    tensor = torch.randn(2, 3, 4, 5)
    strided, last = noncontiguous({"x": [tensor]})["x"][0], channels_last(tensor)
    assert not strided.is_contiguous()
    assert torch.equal(strided, tensor)
    assert last.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(last, tensor)
    scalar, volume = torch.tensor(1.0), torch.randn(1, 2, 3, 4, 5)
    assert noncontiguous(scalar) is scalar
    assert channels_last(volume).is_contiguous(memory_format=torch.channels_last_3d)
    assert channels_last(scalar) is scalar
