# Written by decree. See nbconvert's documentation of --config: this file is Python.
import os
import signal
import sys

import nbformat
from nbconvert.preprocessors import ExecutePreprocessor

_execute = ExecutePreprocessor.preprocess
_output = os.path.join(os.path.dirname(os.path.abspath(__file__)), "output.ipynb")


def _keep(self, nb, resources=None, km=None):
    """Execute in the root; keep what was executed so far if it does not come to its end."""
    resources = resources if resources is not None else {}
    resources.setdefault("metadata", {})["path"] = os.environ["DECREE_ROOT"]
    try:
        return _execute(self, nb, resources, km)
    except BaseException:
        nbformat.write(nb, _output)
        raise


ExecutePreprocessor.preprocess = _keep
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
