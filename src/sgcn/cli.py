"""The command line: a table of commands, and the one function where errors become messages.

Each command is a module of `sgcn.commands`; a new one is a file there and a line in `COMMANDS`.
Exit codes: 0 done, 2 bad input (one sentence on stderr), 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from sgcn.commands import startup
from sgcn.errors import SgcnError
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
    "data build": "data_build",
    "data import": "data_import",
    "data download": "data_download",
    "samplers": "samplers",
    "bench sampling": "bench_sampling",
    "bench data": "bench_data",
    "bench step": "bench_step",
    "bench convergence": "bench_convergence",
    "bench scale": "bench_scale",
    "bench startup": "bench_startup",
}
#: Commands that call no kernel: they need not wait for numba.
WITHOUT_KERNELS = ("report", "data download")
#: The first word of commands of two words.
GROUPS = {
    "data": "Look at graphs, bring your own, and change or hand on what is in them.",
    "bench": "Measure speed.",
}
_DESCRIPTION = """\
Train graph convolutional networks by sampling: any sampler with any variance-reduction rule."""
_EXAMPLES = """\
examples:
  sgcn train flickr-like              train on a graph: a name, a directory or an .npz
  sgcn samplers                       what can be sampled, and with which options
  sgcn bench sampling --out b.json    how fast, against published ways to sample

`sgcn COMMAND --help` has the options and examples of a command."""


def parser() -> argparse.ArgumentParser:
    """The parser of all commands; ``args.run`` is the command's function."""
    root = _parser(argparse.ArgumentParser, "sgcn", _DESCRIPTION, _EXAMPLES)
    root.add_argument("--version", action="version", version=f"sgcn {__version__}")
    commands = {"": _subcommands(root)}
    for name, module_name in COMMANDS.items():
        group, _, word = name.rpartition(" ")
        if group not in commands:
            made = _parser(commands[""].add_parser, group, GROUPS[group], help=GROUPS[group])
            commands[group] = _subcommands(made)
        module = import_module(f"sgcn.commands.{module_name}")
        summary, _, examples = (module.__doc__ or "").partition("\n")
        made = _parser(commands[group].add_parser, word, summary, examples.strip(), help=summary)
        module.arguments(made)
        made.set_defaults(run=module.run, command=name)
    return root


def _parser(
    make: Callable[..., argparse.ArgumentParser],
    name: str,
    description: str,
    epilog: str | None = None,
    **extra: Any,
) -> argparse.ArgumentParser:
    return make(
        name,
        description=description,
        epilog=epilog,
        allow_abbrev=False,  # an option added later must not change what a script means
        formatter_class=argparse.RawDescriptionHelpFormatter,
        **extra,
    )


def _subcommands(of: argparse.ArgumentParser) -> Any:
    return of.add_subparsers(title="commands", metavar="COMMAND", required=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code. (argparse itself exits, with 2 for what it cannot read.)"""
    startup.wait_passively()
    try:
        args = parser().parse_args(argv)
        if args.command not in WITHOUT_KERNELS:
            startup.skip_scipy_blas()
            startup.announce_compiling()
        args.run(args)
        sys.stdout.flush()
    except SgcnError as error:
        print(f"sgcn: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader has left (`sgcn samplers | head`): nothing to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0
