"""The command line, ``dse``.

Exit codes: 0 done, 1 a bug, 2 input that makes no sense, 3 hardware that cannot run the
workload (or a search that found none that can), 130 interrupted.

Each command is a module in ``commands`` with a function ``run``; it is imported when the
command is called, so that ``dse --help`` answers at once.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from arch.errors import InputError
from dse.cli import exits
from mapper.cost import InfeasibleError

INDENT = " " * len("dse: ")
#: Modules and networks are many objects that live on; looking through them every 700 new ones
#: (Python's default) is a tenth of a short command's time.
OBJECTS_BETWEEN_COLLECTIONS = 50_000
#: command -> its line in ``dse --help``; its module is in ``dse.cli.commands``
COMMANDS = {
    "search": "Search hardware and mapping together; write a report.",
    "simulate": "Simulate a workload on an architecture.",
    "map": "Find the best mapping of each operator.",
    "overlap": "Say how far an operator's output may overwrite its input.",
    "recompute": "Find what to keep and what to compute again in a training step.",
    "match": "List which loops of an operator a hardware intrinsic can execute.",
    "validate": "Predict measured kernels and say how far off the predictions are.",
    "check": "Check configuration files without running anything.",
    "list": "List shipped architectures, workloads or searches.",
    "show": "Show a shipped configuration or a workload.",
    "report": "Write the report of a search again.",
    "schema": "Print the JSON Schema of configuration files, for editors.",
    "export-optuna": "Copy a search into a database for Optuna's dashboard.",
}


@dataclass(slots=True)
class Settings:
    """Options given before the command."""

    debug: bool = False


class LazyCommand(TyperCommand):
    """A line of ``dse --help``; becomes the real command when that is called."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        module = importlib.import_module(f"dse.cli.commands.{str(self.name).replace('-', '_')}")
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(self.name)(module.run)
        return get_command(app).make_context(*args, **kwargs)


def show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dse (tilewright) {version('tilewright')}")
        raise typer.Exit


def options(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a bug.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Version.")
    ] = False,
) -> None:
    """Simulate ML accelerators and search hardware and mapping together.

    Start with: dse search resnet18_edge
    """
    context.obj.debug = debug


def build_group() -> TyperGroup:
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.callback()(options)
    group = cast(TyperGroup, get_command(app))
    for name, summary in COMMANDS.items():
        group.add_command(LazyCommand(name, help=summary, rich_markup_mode=None))
    return group


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    settings = Settings()
    given = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        code = build_group().main(given, prog_name="dse", standalone_mode=False, obj=settings)
        sys.stdout.flush()
    except typer.TyperException as error:
        return report_usage(error)
    except InputError as error:
        complain(str(error), heading="")
        return exits.BAD_INPUT
    except InfeasibleError as error:
        complain(f"the hardware cannot run this: {error}")
        return exits.INFEASIBLE
    except (BrokenPipeError, SystemExit):
        # Whoever reads the output (such as ``head``) has seen enough; typer exits on that.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        return report_bug(error, settings)
    if code == exits.INTERRUPTED:
        complain("interrupted")
    return code if isinstance(code, int) else 0


def complain(text: str, *, heading: str = "dse: ") -> None:
    """A message on standard error, as it is."""
    sys.stderr.write(f"{heading}{text}\n")


def report_usage(error: typer.TyperException) -> int:
    """Typer's complaints about the command line, in our form."""
    context = getattr(error, "ctx", None)
    complain(error.format_message())
    if context is not None:
        complain(f"see: {context.command_path} --help", heading=INDENT)
    return exits.BAD_INPUT


def report_bug(error: Exception, settings: Settings) -> int:
    if settings.debug:
        complain("".join(traceback.format_exception(error)))
    complain(f"this is a bug in dse, please report it: {type(error).__name__}: {error}")
    if not settings.debug:
        complain(
            "its traceback, for the report: dse --debug ... (the same command)", heading=INDENT
        )
    return exits.BUG
