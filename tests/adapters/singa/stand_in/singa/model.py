"""A model: layers, compiled by one forward pass, trained one batch at a time."""

from singa import autograd, layer


class Model(layer.Layer):
    def __init__(self):
        super().__init__()
        self.training = True

    def compile(self, inputs, is_train=True, use_graph=False, sequential=False):
        if use_graph:
            raise SystemError("graph mode crashed")
        self.forward(*inputs)
        autograd.training = self.training = is_train

    def __call__(self, *given):
        return self.train_one_batch(*given) if self.training else self.forward(*given)
