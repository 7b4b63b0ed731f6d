"""The command line: a table of commands, and the one function where errors become messages.

Each command is a module of `sgcn.commands`; a new one is a file there and a line in `COMMANDS`.
Exit codes: 0 done, 2 bad input (one sentence on stderr), 3 training diverged, 130 and 143 stopped
by Ctrl-C and SIGTERM.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from sgcn.commands import startup
from sgcn.errors import SgcnError
from sgcn.training.options import option_names
from sgcn.version import __version__

#: What the user types, and the module of `sgcn.commands` behind it.
COMMANDS = {
    "train": "train",
    "compare": "compare",
    "evaluate": "evaluate",
    "predict": "predict",
    "variance": "variance",
    "theory": "theory",
    "report": "report",
    "reproduce": "reproduce",
    "data list": "data_list",
    "data info": "data_info",
    "data split": "data_split",
    "data features": "data_features",
    "data verify": "data_verify",
    "data export": "data_export",
    "data import": "data_import",
    "data download": "data_download",
    "samplers": "samplers",
}
#: Modules of commands that call no kernel: they need not wait for numba.
WITHOUT_KERNELS = ("sgcn.commands.report", "sgcn.commands.data_download")
#: The first word of commands of two words.
GROUPS = {
    "data": "Look at graphs, bring your own, and change or hand on what is in them.",
}
_DESCRIPTION = """\
Train graph convolutional networks by sampling: any sampler with any variance-reduction rule."""
_EXAMPLES = """\
examples:
  sgcn train flickr-like              train on a graph: a name, a directory or an .npz
  sgcn samplers                       what can be sampled, and with which options
  sgcn compare debian                 train five ways on a graph in the box

`sgcn COMMAND --help` has the options and examples of a command."""


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line; ``args.run`` is the command's function."""
    root = make_parser(argparse.ArgumentParser, "sgcn", _DESCRIPTION, _EXAMPLES)
    root.add_argument("--version", action="version", version=f"sgcn {__version__}")
    commands = {"": subcommands(root)}
    for name, module_name in COMMANDS.items():
        group, _, word = name.rpartition(" ")
        if group not in commands:
            made = make_parser(commands[""].add_parser, group, GROUPS[group], help=GROUPS[group])
            commands[group] = subcommands(made)
        add_command(commands[group], word, f"sgcn.commands.{module_name}")
    return root


def make_parser(
    make: Callable[..., argparse.ArgumentParser],
    name: str,
    description: str,
    epilog: str | None = None,
    **extra: Any,
) -> argparse.ArgumentParser:
    """A parser by ``make``, with the settings that all parsers of this project share."""
    return make(
        name,
        description=description,
        epilog=epilog,
        allow_abbrev=False,  # an option added later must not change what a script means
        formatter_class=argparse.RawDescriptionHelpFormatter,
        **extra,
    )


def subcommands(of: argparse.ArgumentParser) -> Any:
    return of.add_subparsers(title="commands", metavar="COMMAND", required=True)


def add_command(commands: Any, word: str, module_name: str) -> None:
    """The command ``word`` of the module: its docstring, ``arguments(parser)``, ``run(args)``."""
    module = import_module(module_name)
    summary, _, examples = (module.__doc__ or "").partition("\n")
    made = make_parser(commands.add_parser, word, summary, examples.strip(), help=summary)
    module.arguments(made)
    made.set_defaults(run=module.run, module=module_name, parser=made)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    return execute("sgcn", parser, argv)


def execute(
    program: str, make: Callable[[], argparse.ArgumentParser], argv: Sequence[str] | None
) -> int:
    """Run what ``argv`` asks of the parser that ``make`` returns; the exit code.

    argparse itself exits, with 2 for values that it cannot read.
    """
    startup.wait_passively()
    try:
        args, left = make().parse_known_args(argv)
        if left:
            raise SgcnError(_not_taken(args.parser, left))
        if vars(args).get("module") not in WITHOUT_KERNELS:
            startup.skip_scipy_blas()
            startup.announce_compiling()
        args.run(args)
        sys.stdout.flush()
    except SgcnError as error:
        print(f"{program}: error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader has left (`sgcn samplers | head`): nothing to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


def _not_taken(command: argparse.ArgumentParser, left: Sequence[str]) -> str:
    """What is wrong with the words ``left`` over, of which one may be a mistyped flag."""
    wrong = next((word for word in left if word.startswith("-")), None)
    if wrong is None:
        return f"{command.prog} has no use for {left[0]!r}, see {command.prog} --help"
    name, _, value = wrong.partition("=")
    flags = re.findall(r"--[\w-]+", command.format_usage())
    key = name.lstrip("-").replace("-", "_")
    after = left[left.index(wrong) + 1 :]
    value = value or (after[0] if after and not after[0].startswith("-") else "VALUE")
    # What takes --config takes every option of the configuration by --set.
    hints = {flag.lstrip("-").replace("-", "_"): flag for flag in flags}
    if "--formats" in flags:
        from sgcn.data.importers import IMPORTERS

        rows = (row for kind in IMPORTERS.values() for row in kind.listed())
        hints = {row[0]: f"--set {row[0]}={value}" for row in rows} | hints
    for slow in (False, True):
        if "--config" in flags:
            keys = option_names(slow)
            hints = {key: f"--set {section}.{key}={value}" for key, section in keys} | hints
            hints |= {"optimizer": f"--set optimizer.name={value}", "hidden": f"--widths {value}"}
        close = difflib.get_close_matches(key, hints, 1, 0.6 if slow else 0.8)
        if close:
            break
    hint = f", did you mean {hints[close[0]]}?" if close else f", see {command.prog} --help"
    return f"{command.prog} has no flag {name}{hint}"
