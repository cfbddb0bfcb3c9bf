"""Tensors over numpy arrays."""

import numpy as np

float32, int32 = 0, 2
KINDS = {float32: np.float32, int32: np.int32}


class Tensor:
    def __init__(
        self, shape=(), device=None, dtype=float32, data=None, requires_grad=True, stores_grad=False
    ):
        self.data = np.zeros(shape, KINDS[dtype]) if data is None else data
        self.device = device
        self.dtype = dtype
        self.creator = None
        self.name = None
        self.requires_grad, self.stores_grad = requires_grad, stores_grad

    @property
    def shape(self):
        return tuple(self.data.shape)

    def copy_from_numpy(self, array):
        assert array.dtype == self.data.dtype, (array.dtype, self.data.dtype)
        assert array.shape == self.shape
        self.data[...] = array

    def set_value(self, value):
        self.data[...] = value


def to_numpy(tensor):
    return np.array(tensor.data)
