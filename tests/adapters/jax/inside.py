"""This file runs checks in an interpreter that has JAX: ``python inside.py FILE`` prints JSON.

That interpreter has no pytest; a check is a function called ``test_…`` without arguments. The
answer maps each to null or its traceback.
"""

import importlib.util
import json
import sys
import traceback


def main(path):
    spec = importlib.util.spec_from_file_location("checks", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    answer = {}
    for name, check in list(vars(module).items()):
        if name.startswith("test_"):
            try:
                check()
                answer[name] = None
            except Exception:  # noqa: BLE001 - every fault of a check is its answer
                answer[name] = traceback.format_exc()
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1])
