"""Draws for tests: with the laws of the exact samplers from a seeded generator, and draws that add nothing."""

import math
from random import Random

import numpy as np

from ldp_server.curator.draws import Draws
from ldp_server.curator.noise import ExactDraws


class Seeded(Draws):
    """Numpy's generator; the discrete Gaussian is a rounded one, and the selections are by exponential noise."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.whole = Random(seed)  # of numbers beyond 64 bits, too

    def laplace(self, values, scale):
        ends = self.rng.geometric(-math.expm1(-1 / scale), (2, len(values)))
        return (np.array(values) + ends[0] - ends[1]).tolist()

    def gaussian(self, values, sigma):
        return np.rint(np.array(values) + self.rng.normal(0, sigma, len(values))).astype(int).tolist()

    def select(self, scores, scale):
        return int(np.argmax(np.array(scores) + self.rng.exponential(scale, len(scores))))

    def exponential(self, scores, scale):
        return int(np.argmax(np.array(scores) + self.rng.gumbel(0, scale, len(scores))))

    def uniform(self, count):
        return self.whole.randrange(count)


class Noted(ExactDraws):
    """Adds nothing to numbers, and notes what noise would have been added to."""

    def __init__(self):
        self.values, self.scales = [], []

    def laplace(self, values, scale):
        self.values.append(list(values))
        self.scales.append(scale)
        return list(values)

    gaussian = laplace
