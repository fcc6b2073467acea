"""A stand-in for Colab's own module: notebooks and libraries look for it to know that they are in Colab."""
