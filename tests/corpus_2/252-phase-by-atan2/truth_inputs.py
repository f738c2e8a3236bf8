import torch


def points():
    z = torch.zeros(1, 9)
    p = torch.linspace(-4, 4, 9)[None]
    return [("imag0", (p, z)), ("real0", (z, p)), ("both0", (z, z)), ("imag-0", (p, -z))]
