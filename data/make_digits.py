"""Writes digits.npz from scikit-learn's copy of the UCI digits.

    pip install scikit-learn numpy
    python data/make_digits.py
"""

import pathlib

import numpy as np
from sklearn.datasets import load_digits

digits = load_digits()
np.savez_compressed(
    pathlib.Path(__file__).parent / "digits.npz",
    x=(digits.data / 16.0).astype(np.float32),
    y=digits.target.astype(np.int32),
)
