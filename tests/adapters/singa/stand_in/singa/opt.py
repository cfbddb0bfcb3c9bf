"""Optimisers: state by the parameter's name, so that equal names share it."""

import numpy as np

from singa import autograd


class Optimizer:
    def __init__(self, lr):
        self.lr = lr
        self.steps = 0

    def __call__(self, loss):
        for parameter, gradient in autograd.backward(loss):
            if parameter.name is None:
                parameter.name = id(parameter)
            self.apply(parameter.name, parameter, gradient)
        self.steps += 1


class SGD(Optimizer):
    def __init__(self, lr=0.1, momentum=0, weight_decay=0):
        super().__init__(lr)
        self.momentum, self.weight_decay, self.moments = momentum, weight_decay, {}

    def apply(self, name, value, gradient):
        gradient.data += self.weight_decay * value.data
        kept = self.moments.setdefault(name, np.zeros_like(value.data))
        kept *= self.momentum
        kept += gradient.data
        value.data -= self.lr * kept


class Adam(Optimizer):
    def __init__(self, lr=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-8, weight_decay=0):
        super().__init__(lr)
        self.betas, self.epsilon, self.moments = (beta_1, beta_2), epsilon, {}

    def apply(self, name, value, gradient):
        zeros = np.zeros_like(value.data)
        first, second = self.moments.setdefault(name, (zeros, zeros.copy()))
        one, two = self.betas
        first += (1 - one) * (gradient.data - first)
        second += (1 - two) * (gradient.data**2 - second)
        step = self.steps + 1
        root = np.sqrt(second / (1 - two**step)) + self.epsilon
        value.data -= self.lr * (first / (1 - one**step)) / root
