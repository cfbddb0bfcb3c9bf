"""Say in full which type of number XLA and oneDNN shorten alike."""

from __future__ import annotations

IN_FULL = {"f32": "float32", "bf16": "bfloat16", "f16": "float16", "f64": "float64"}
