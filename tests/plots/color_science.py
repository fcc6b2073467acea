"""What the eye makes of colors: contrast, lightness and the three color-vision deficiencies, computed."""

import matplotlib
import numpy as np

# Severity 1.0 of Machado, Oliveira & Fernandes, A Physiologically-based Model for Simulation of Color Vision
# Deficiency (2009), table 1, https://doi.org/10.1109/TVCG.2009.113: matrices for linear RGB.
VISION = {
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
# Text and background as readers meet them; the site's dark theme puts output of this kind on a light box.
PAGES = {
    "site, light": ("#222832", "#FFFFFF"),
    "site, dark, output box": ("#222832", "#CED6DD"),
    "site, dark": ("#CED6DD", "#14181E"),
    "JupyterLab, dark": ("#E0E0E0", "#111111"),
    "Colab, dark": ("#D5D5D5", "#383838"),
}


def rgb(color):
    """Return red, green and blue from 0 to 1, as displayed."""
    return np.array(matplotlib.colors.to_rgb(color))


def linear(shown):
    return np.where(shown <= 0.04045, shown / 12.92, ((shown + 0.055) / 1.055) ** 2.4)


def contrast(a, b):
    """Return the contrast ratio of WCAG 2.1, https://www.w3.org/TR/WCAG21/#dfn-contrast-ratio."""
    dark, light = sorted(float(TO_XYZ[1] @ linear(color)) for color in (a, b))
    return (light + 0.05) / (dark + 0.05)


def lab(light):
    """Return CIELAB of linear RGB under D65."""
    ratio = TO_XYZ @ np.clip(light, 0, 1) / (0.95047, 1, 1.08883)
    x, y, z = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])
