"""Run checks in an interpreter without pytest.

    python -m tests.adapters.inside FILE [FILE …]        prints JSON

A check is a function called ``test_…`` without arguments. The answer maps each file's to null or
their traceback; a warning is one too. Python 3.7 grammar: TensorFlow 1.15 lives there.
"""

import importlib.util
import json
import sys
import traceback
import warnings


def main(paths):
    sys.stdout.write("\n" + json.dumps({path: answer_of(path) for path in paths}) + "\n")


def answer_of(path):
    with warnings.catch_warnings():
        spec = importlib.util.spec_from_file_location("checks", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        warnings.simplefilter("error")
        return checked(module)


def checked(module):
    answer = {}
    for name, check in list(vars(module).items()):
        if name.startswith("test_"):
            try:
                check()
                answer[name] = None
            except Exception:  # noqa: BLE001 - every fault of a check is its answer
                answer[name] = traceback.format_exc()
    return answer


if __name__ == "__main__":
    main(sys.argv[1:])
