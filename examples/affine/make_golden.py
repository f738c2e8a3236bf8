"""Writes golden.npz: one input and the output worked out by hand, never by the model.

y[0] = 1*0.5 - 1*1.0 + 0.1 = -0.4
y[1] = 2*0.5 + 0.5*1.0 - 0.2 = 1.3
"""

from pathlib import Path

import numpy as np

GOLDEN = Path(__file__).with_name("golden.npz")

if __name__ == "__main__":
    np.savez(GOLDEN, x=np.array([[0.5, 1.0]], dtype=np.float32), y=np.array([[-0.4, 1.3]], dtype=np.float32))
