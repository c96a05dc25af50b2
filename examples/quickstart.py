"""The three lines: read a program in XLA's text, compile it for this machine, call it with numpy arrays."""

from pathlib import Path

import numpy as np

import hloforge

session = hloforge.compile(Path(__file__).with_name("model.hlo")).load()
probabilities, digits = session(np.zeros((10, 16, 16, 1), np.float32))
print(session.signature, digits, sep="\n")
