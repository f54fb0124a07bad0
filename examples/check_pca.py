#!/usr/bin/env python3
"""Compares what the pca example left in a folder with NumPy.

    check_pca.py data.npy outdir

NumPy goes another way: singular values of the centred data, where the example solves for the eigenvalues of the
covariance. Components are compared up to their sign, and only where no other has nearly the same variance; every
one of them has to satisfy the eigenvalue equation.
"""
import os
import sys
import xml.etree.ElementTree

import numpy as np


def check(name, error, bound):
    """error <= bound, and not NaN."""
    good = bool(error <= bound)
    print(f"  {name:<44} {error:9.2e}  (at most {bound:.1e})  {'ok' if good else 'WRONG'}")
    return good


def main(data_path, outdir):
    raw = np.load(data_path)
    eps = 2e-7 if raw.dtype == np.float32 else 3e-16
    x = raw.astype(np.float64)
    m, n = x.shape
    variance = np.load(os.path.join(outdir, "explained_variance.npy"))
    components = np.load(os.path.join(outdir, "components.npy"))
    projections = np.load(os.path.join(outdir, "projections.npy"))
    k = components.shape[0]
    print(f"{outdir}: {m} x {n}, {k} components, against NumPy {np.__version__}")

    good = True
    for name, array, shape in (("explained_variance", variance, (n,)), ("components", components, (k, n)),
                               ("projections", projections, (m, k))):
        if array.shape != shape or array.dtype != np.float64:
            print(f"  {name}: {array.dtype} of {array.shape}, expected float64 of {shape}: WRONG")
            good = False
    if not good:
        return 1

    x = x - x.mean(axis=0)
    _, singular, right = np.linalg.svd(x, full_matrices=False)
    wanted = np.zeros(n)
    wanted[:singular.size] = singular**2 / (m - 1)
    largest = wanted[0]
    covariance = x.T @ x / (m - 1)
    tolerance = eps * 50 * np.sqrt(m) + eps * n

    good &= check("explained variance, relative to the largest", np.abs(variance - wanted).max() / largest, tolerance)
    good &= check("descending order", max(0.0, np.diff(variance).max() / largest) if n > 1 else 0.0, 0.0)
    good &= check("components are orthonormal", np.abs(components @ components.T - np.eye(k)).max(), 1e-13 * n)
    residual = components @ covariance - variance[:k, None] * components
    good &= check("eigenvalue equation, relative", np.abs(residual).max() / largest, tolerance)
    good &= check("projections = centred data x components",
                  np.abs(projections - x @ components.T).max() / np.abs(x).max(), tolerance * np.sqrt(n))

    compared, worst, worst_projection = 0, 0.0, 0.0
    for i in range(min(k, singular.size)):
        gap = np.abs(np.delete(wanted, i) - wanted[i]).min() / largest if n > 1 else 1.0
        if gap > 1e-3:
            sign = 1.0 if right[i] @ components[i] > 0 else -1.0
            worst = max(worst, np.abs(sign * right[i] - components[i]).max() * gap)
            difference = np.abs(sign * (x @ right[i]) - projections[:, i]).max() / np.sqrt(wanted[0])
            worst_projection = max(worst_projection, difference * gap)
            compared += 1
    good &= check(f"{compared} components, up to sign (times gap)", worst, tolerance)
    good &= check(f"{compared} projections, up to sign (times gap)", worst_projection, tolerance * np.sqrt(n) * 10)
    if compared == 0:
        print("  no component could be compared: WRONG")
        good = False

    if k >= 2:
        picture = xml.etree.ElementTree.parse(os.path.join(outdir, "pca.svg"))
        points = len(picture.findall(".//{http://www.w3.org/2000/svg}circle"))
        good &= check("points missing in pca.svg", abs(points - min(m, 20000)), 0)
    print("agrees" if good else "DOES NOT AGREE")
    return 0 if good else 1


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2]))
