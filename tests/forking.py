"""A process that has imported a framework, and forks a worker for each job it reads.

Importing takes most of an examination's time. Nothing else is shared: each child starts from the
bare import, with its own payload first on its path.
"""

import contextlib
import importlib
import json
import os
import runpy
import signal
import sys

for name in sys.argv[1:]:
    importlib.import_module(name)
for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        os.chdir(asked["cwd"])
        os.environ.update(asked["env"])
        sys.path[:0] = asked["path"]
        words = os.open("words", os.O_CREAT | os.O_WRONLY, 0o644)
        os.dup2(words, 1)
        os.dup2(words, 2)
        sys.argv = ["harness.worker", "job.json"]
        code = 0
        try:
            runpy.run_module("harness.worker", run_name="__main__", alter_sys=True)
        except SystemExit as end:
            code = int(end.code or 0)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # readers that it started, and left by _exit
    print(os.waitstatus_to_exitcode(status), flush=True)
