"""Logits, and labels drawn from the probabilities that they stand for."""

import numpy as np
import scipy.special


def draw(seed, size=300, num_classes=5):
    generator = np.random.default_rng(seed)
    logits = generator.normal(scale=2, size=(size, num_classes))
    labels = np.array([generator.choice(num_classes, p=row) for row in scipy.special.softmax(logits, axis=1)])
    return logits, labels
