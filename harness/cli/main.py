"""The front door: it finds the verb, runs it, and turns errors into one message.

Verbs are imported only when asked for, so that help costs nothing and no verb needs what another
one imports.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import signal
import sys
from types import FrameType
from typing import Any

import click

from harness import waiting
from harness.cli import early_signals
from harness.cli.output import (
    discard,
    lost_output,
    note,
    open_closed_streams,
    say,
    show_warnings,
    write_what_can_be_written,
)
from harness.errors import BakeoffError, nearest

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""What a full disk or a broken device behind the standard output says."""

_REFUSED = (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP, errno.ESTALE, errno.EIO)
"""What a file system says of a path that a person named."""

_BY_SIGNAL = 128
"""What shells add to the number of a signal that ended a program."""

_NO_THREAD = "can't start new thread"
"""What Python says where the system lets it have no more of them."""

VERBS = {
    "init": "Write a first study for this machine, from what is installed here.",
    "run": "Run a study and write its report.",
    "plan": "Print what a study would run, and touch nothing.",
    "preflight": "Look for everything that would stop a study, before the queue.",
    "verify": "Prove that a study's cells compute the same thing.",
    "resume": "Go on with a run that was interrupted.",
    "status": "Say how far a run is, and what its queue says of it.",
    "cancel": "Take a run's jobs back from the queue, or end its session here.",
    "list": "List workloads, frameworks, platforms, studies or runs.",
    "show": "Show a run's answer and ranking in the terminal.",
    "explain": "Say why one cell of a run is slower than another.",
    "layers": "Time each layer of a network alone, and keep the least that each needs.",
    "report": "Write the HTML page of one or more runs.",
    "predict": "Predict what more nodes than were measured would reach.",
    "compare": "Compare two runs cell by cell; a gate for CI.",
    "export": "Write a run's tables, figures and traces for papers and programs.",
    "watch": "Show live what a running trial does to the machine.",
    "collect": "Observe any command, and say what the hardware did meanwhile.",
    "sql": "Query a run's raw tables.",
    "reference": "Keep and list published figures to hold results against.",
    "platforms": "Probe this machine; show, check and start profiles of machines.",
    "data": "Make, list, check and remove the data sets that studies read.",
    "env": "Build, check and remove framework environments.",
    "pack": "Make one archive that installs Bakeoff where there is no network.",
    "unpack": "Install what such an archive holds.",
    "screen": "Find the nodes that are slower than the others, or compute otherwise.",
    "doctor": "Say what is missing here and what would spoil numbers.",
}


_SET_TRIALS = "--set measure.trials=N"
_PLAN = "bakeoff plan STUDY, which touches nothing"
_RETRY = "bakeoff resume RUN --retry-failed"
_LIST = "a list: --set 'matrix.batch=[8, 16]'"
_HABITS = {
    "--trials": _SET_TRIALS,
    "-n": _SET_TRIALS,
    "--runs": _SET_TRIALS,
    "--repeat": _SET_TRIALS,
    "--warmup": '--set "measure.warmup=5 s"',
    "--framework": "--only framework=NAME",
    "--workload": "--only workload=NAME",
    "--precision": "--only precision=NAME",
    "--batch": "--only batch=N",
    "--device": "--only device=gpu, or --set matrix.device=gpu for what the study has not",
    "-k": "--only FACTOR=VALUE",
    "-o": "--output FILE, of report, export and collect, or --json",
    "--output": "--json, or bakeoff export RUN --to FORMAT --output FILE",
    "--dry-run": _PLAN,
    "--collect-only": _PLAN,
    "--co": _PLAN,
    "--lf": _RETRY,
    "--last-failed": _RETRY,
    "--min-runs": _SET_TRIALS,
    "--max-runs": _SET_TRIALS,
    "--seed": "--set measure.seed=N",
    "-L": _LIST,
    "-P": _LIST,
    "--parameter-list": _LIST,
    "--parameter-scan": _LIST,
    "--gpu": "--only device=gpu, or --set matrix.device=gpu for what the study has not",
    "-f": "the file alone: bakeoff run FILE",
    "--format": "--json, or bakeoff export RUN --to FORMAT",
    "--export-json": "bakeoff export RUN --to json",
    "--export-csv": "bakeoff export RUN --to csv",
    "--export-markdown": "bakeoff export RUN --to markdown",
    "--watch": "bakeoff watch RUN",
    "--threshold": '--fail-if "slower > 3 %", of bakeoff compare',
    "get": "bakeoff list runs, or bakeoff status RUN",
    "describe": "bakeoff show RUN, or bakeoff status RUN",
    "apply": "bakeoff run STUDY",
    "delete": "rm -r runs/NAME, as all of a run lies in its folder",
    "top": "bakeoff watch RUN",
    "logs": "bakeoff watch RUN; what ranks printed is in RUN/cells/*/trial-*/rank.*.out and .err",
}
"""Options and verbs of pytest, kubectl, hyperfine and the like, and what does the same here."""


_WHERE = {
    "RUN": "latest, or a name that `bakeoff list runs` prints",
    "STUDY": "a .toml file, or a name that `bakeoff list studies` prints",
}
"""What to give for an argument that is missing."""


def _habit(error: click.ClickException) -> str:
    """Say what is used here instead of an option that other programs have, or is missing."""
    if isinstance(error, click.MissingParameter) and error.param is not None:
        given = _WHERE.get((error.param.metavar or "").partition("…")[0])
        return f"Give {given}.\n" if given else ""
    used = _HABITS.get(error.option_name) if isinstance(error, click.NoSuchOption) else None
    return f"Use {used}.\n" if used else ""


class Verbs(click.Group):
    """A group whose members are modules of this package, imported on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the verbs in the order a newcomer needs them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one verb."""
        if cmd_name not in VERBS:
            return None
        command = importlib.import_module(f"harness.cli.verbs.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest the nearest verb for a misspelt one."""
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            used = _HABITS.get(args[0])
            hint = f" Use {used}." if used else nearest(args[0], VERBS)
            ctx.fail(f"There is no command '{args[0]}'.{hint}\n    Known: {', '.join(VERBS)}.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


def _print_version(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version

        say(f"bakeoff {version('bakeoff')}")
        ctx.exit()


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
def bakeoff() -> None:
    """Say which framework, on which machine, with which settings, trains a model fastest.

    Start with: bakeoff run quickstart
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; 0 fine, 1 something failed, 2 usage, 130 interrupted, 143 killed."""
    open_closed_streams()
    write_what_can_be_written()
    show_warnings()
    waiting.tell_by(note)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        early_signals.take_over(number, _end)
    sys.exit(_run(arguments))


_received: list[int] = []
"""The signals that asked this process to end, the first of them first."""


def _end(number: int, frame: FrameType | None) -> None:
    """End as for Ctrl-C when killed politely, so that nothing we started goes on without us."""
    _received.append(number)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(_BY_SIGNAL + number)


def _run(arguments: list[str] | None) -> int:
    try:
        return _ended(arguments)
    except Exception:
        if not _received:
            raise
        # A library that was at work then, pydantic for one, may end with an error of its own.
        note("Interrupted.")
        return _BY_SIGNAL + _received[0]


def _ended(arguments: list[str] | None) -> int:
    """Run the verb, and answer each way in which it ends by a message and an exit code."""
    try:
        result: Any = bakeoff.main(arguments, prog_name="bakeoff", standalone_mode=False)
        sys.stdout.flush()
    except BakeoffError as error:
        from harness.worker.redaction.redact import redact_text

        note(redact_text(str(error)))  # it may repeat what a file holds
        return error.exit_code
    except click.ClickException as error:
        told = io.StringIO()
        error.show(told)
        note(told.getvalue() + _habit(error))
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        note("Interrupted.")
        return 130
    except SystemExit as stop:
        if isinstance(stop.code, int) and stop.code > _BY_SIGNAL:  # not what click completes with
            note("Interrupted.")
        raise
    except BrokenPipeError:
        # The reader of our output (head, less) went away; that is no fault.
        discard(sys.stdout)
        return 0
    except (BlockingIOError, RuntimeError) as error:
        if not isinstance(error, BlockingIOError) and str(error) != _NO_THREAD:
            raise
        note(
            "Nothing more can be started: this user may have no further process or thread "
            "(`ulimit -u`, or a limit of the container). What finished is kept."
        )
        return 1
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            note(
                "Nothing more can be opened: this user may have no further file open "
                "(`ulimit -n`, or a limit of the machine). What finished is kept."
            )
            return 1
        if error.filename is not None and error.errno in _REFUSED:
            note(f"{os.fsdecode(error.filename):.200}: {error.strerror}.")
            return 1
        if error.filename is not None or error.errno not in _FULL:
            raise
        discard(sys.stdout)
        return _of_lost(error)
    code = result if isinstance(result, int) else 0
    lost = lost_output()
    return code if code or lost is None else _of_lost(lost)


def _of_lost(error: OSError) -> int:
    """Say that results were lost; nothing is wrong where their reader (head, less) went away."""
    if isinstance(error, BrokenPipeError):
        return 0
    note(f"The output cannot be written: {error.strerror}.")
    return 1
