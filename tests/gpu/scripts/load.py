"""Keep the first GPU busy with products of matrices: ``python load.py torch SECONDS``.

It prints a line as soon as the GPU computes, and ends after these seconds whatever happens.
"""

import signal
import sys

SIZE = 8192


def torch():
    import torch

    x = torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16)

    def product():
        torch.matmul(x, x)
        torch.cuda.synchronize()

    return product


def jax():
    import jax

    x = jax.random.normal(jax.random.key(0), (SIZE, SIZE), jax.numpy.bfloat16)
    matmul = jax.jit(jax.numpy.matmul)
    return lambda: matmul(x, x).block_until_ready()


def main():
    signal.alarm(int(sys.argv[2]))
    product = {"torch": torch, "jax": jax}[sys.argv[1]]()
    product()
    print("busy", flush=True)
    while True:
        product()


if __name__ == "__main__":
    main()
