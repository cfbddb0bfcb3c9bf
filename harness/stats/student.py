"""Give Student's t without scipy, whose import would cost more than a whole report."""

from __future__ import annotations

from math import expm1, inf, pi, sqrt, tan
from statistics import NormalDist


def critical_t(alpha: float, freedom: float) -> float:
    """Give the two-sided critical value (Hill, Algorithm 396, Comm. ACM 13, 1970).

    Exact for one and two degrees of freedom, within 1e-5 of it from three on.
    """
    if freedom < 1:
        return inf
    if freedom == 1:
        return 1 / tan(alpha * pi / 2)
    if freedom == 2:
        return sqrt(2 / (alpha * (2 - alpha)) - 2)
    n = freedom
    a = 1 / (n - 0.5)
    b = 48 / a**2
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * sqrt(a * pi / 2) * n
    x = d * alpha
    y = x ** (2 / n)
    if y > a + 0.05:
        x = NormalDist().inv_cdf(alpha / 2)
        y = x * x
        if freedom < 5:
            c += 0.3 * (n - 4.5) * (x + 0.6)
        c += (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
        y = a * y * y
        y = y + y * y / 2 if y <= 0.002 else expm1(y)
    else:
        y = (
            (1 / (((n + 6) / (n * y) - 0.089 * d - 0.822) * (n + 2) * 3) + 0.5 / (n + 4)) * y - 1
        ) * (n + 1) / (n + 2) + 1 / y
    return sqrt(n * y)
