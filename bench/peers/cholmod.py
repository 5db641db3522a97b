"""CHOLMOD on task G: `python cholmod.py SYSTEM.npz MODELS.npy` solves a system, and prints one line of JSON.

The system is the lower triangle of a positive definite matrix, as rows, columns and values, and the right side. CHOLMOD
is that of cvxopt, whose wheel brings it along.
"""

import json
import sys
import time

import numpy as np
from cvxopt import cholmod, matrix, spmatrix


def main() -> None:
    """Solve once, from the sparse matrix on."""
    given = np.load(sys.argv[1])
    b = matrix(given["b"])
    H = spmatrix(matrix(given["values"]), matrix(given["rows"]), matrix(given["columns"]), (len(b), len(b)))
    began = time.perf_counter()
    cholmod.linsolve(H, b)
    seconds = time.perf_counter() - began
    np.save(sys.argv[2], np.array(b).ravel())
    print(json.dumps({"s": seconds}))


if __name__ == "__main__":
    main()
