"""The kernel of a Colab session: libraries recognize Colab by the name of its shell."""

from ipykernel.ipkernel import IPythonKernel
from ipykernel.zmqshell import ZMQInteractiveShell
from traitlets import Type


class Shell(ZMQInteractiveShell):
    """IPython's shell under a name that begins with google.colab."""


class Kernel(IPythonKernel):
    """IPython's kernel with that shell."""

    shell_class = Type(Shell)
