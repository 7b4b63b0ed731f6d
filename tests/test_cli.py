"""The command line: help, exit codes, words for errors, and what may not be imported for help."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from sgcn import SgcnError, __version__, cli
from sgcn.commands import samplers as samplers_command
from sgcn.samplers import SAMPLERS


def run(capsys, *argv):
    """(exit code, stdout, stderr) of a command in this process."""
    try:
        code = cli.main(argv)
    except SystemExit as end:
        code = end.code
    return (code, *capsys.readouterr())


def python(*argv, **options):
    return subprocess.run(
        [sys.executable, *argv], capture_output=True, text=True, timeout=120, **options
    )


@pytest.mark.parametrize(
    "argv",
    [["--help"], ["--version"], ["samplers", "--help"], ["data", "--help"], ["train", "--help"]],
)
def test_help_waits_for_nothing_heavy(argv):
    code = (
        "import sys; from sgcn.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit as end: assert end.code == 0\n"
        "heavy = {'numba', 'torch', 'numpy', 'scipy'} & set(sys.modules); assert not heavy, heavy"
    )
    done = python("-c", code, *argv)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_command_has_help_with_examples(capsys):
    for name in cli.COMMANDS:
        code, out, _ = run(capsys, *name.split(), "--help")
        assert code == 0
        assert "examples:" in out
        assert f"sgcn {name}" in out
    assert "examples:" in run(capsys, "--help")[1]


def test_version(capsys):
    assert run(capsys, "--version") == (0, f"sgcn {__version__}\n", "")


def test_the_module_is_the_script():
    done = python("-m", "sgcn", "--version")
    assert (done.returncode, done.stdout) == (0, f"sgcn {__version__}\n")
    assert python("-m", "sgcn", "nonsense").returncode == 2


def test_samplers_lists_every_option(capsys):
    code, out, err = run(capsys, "samplers")
    assert (code, err) == (0, "")
    for name, kind in SAMPLERS.items():
        assert f"{name}: {kind.summary}\n" in out
        for option, _, words, help in kind.described():
            assert f"  {option} = " in out
            assert words in out
            assert help in out


def test_samplers_lists_the_ones_asked_for(capsys):
    out = run(capsys, "samplers", "ladies")[1]
    assert out.startswith("ladies: ")
    assert "keep_destinations = true" in out
    assert "neighbor" not in out.partition("\n")[0]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["samplers", "ladys"], "sampler is 'ladys', expected one of exact, neighbor"),
        (["samplers", "ladys"], "(did you mean 'ladies'?)"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(capsys, argv, message):
    code, out, err = run(capsys, *argv)
    assert (code, out) == (2, "")
    assert err.startswith("sgcn: error: ")
    assert err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize(
    "argv", [[], ["sampler"], ["data"], ["data", "nonsense"], ["train", "--lr"]],
)  # fmt: skip
def test_unknown_words_exit_2_with_usage(capsys, argv):
    code, out, err = run(capsys, *argv)
    assert (code, out) == (2, "")
    assert "usage: sgcn" in err
    assert "error:" in err


@pytest.mark.parametrize(
    ("argv", "hint"),
    [
        ("train debian --learning-rte 1", "no flag --learning-rte, see sgcn train --help"),
        ("train debian --batch_size 4", "no flag --batch_size, did you mean --batch-size?"),
        ("train debian --epoch=4", "did you mean --epochs?"),
        ("train debian --momentum 0.5", "did you mean --set optimizer.momentum=0.5?"),
        ("train debian --activaton=relu --quiet", "did you mean --set model.activation=relu?"),
        ("train debian --zzzz --quiet", "no flag --zzzz, see"),
        ("compare debian --weight-decay", "did you mean --set optimizer.weight_decay=VALUE?"),
        ("train debian --sizes 10", "did you mean --set sampler.sizes=10?"),
        ("train debian --gap 10", "did you mean --set estimator.gap=10?"),
        ("train debian wordnet", "sgcn train has no use for 'wordnet'"),
        ("data info debian --jsn", "sgcn data info has no flag --jsn, did you mean --json?"),
        ("data info debian --dropout 1", "no flag --dropout, see sgcn data info --help"),
        ("train debian --optimizer sgd", "did you mean --set optimizer.name=sgd?"),
        ("train debian --hidden 64", "did you mean --widths 64?"),
        ("data import table x --kind numbers", "did you mean --set kind=numbers?"),
        ("samplers --nonsense", "sgcn samplers has no flag --nonsense, see"),
    ],
)
def test_a_flag_that_is_none_gets_a_hint(capsys, argv, hint):
    code, out, err = run(capsys, *argv.split())
    assert (code, out) == (2, "")
    assert err.startswith("sgcn: error: sgcn ")
    assert err.count("\n") == 1
    assert hint in err


@pytest.mark.parametrize("flag", ["--dropuot", "--batch_size"])
def test_most_hints_wait_for_nothing_heavy(flag):
    code = (
        "import sys; from sgcn.cli import main\n"
        "assert main(['train', 'debian', sys.argv[1]]) == 2\n"
        "heavy = {'numba', 'torch', 'numpy', 'scipy'} & set(sys.modules); assert not heavy, heavy"
    )
    assert python("-c", code, flag).returncode == 0


def test_an_error_of_ours_is_the_only_one_without_traceback(monkeypatch, capsys):
    def fail(error):
        def run(args):
            raise error

        monkeypatch.setattr(samplers_command, "run", run)

    fail(SgcnError("got this, expected that"))
    assert run(capsys, "samplers") == (2, "", "sgcn: error: got this, expected that\n")
    fail(KeyboardInterrupt())
    assert run(capsys, "samplers") == (130, "", "")
    fail(ZeroDivisionError("a bug"))
    with pytest.raises(ZeroDivisionError):
        cli.main(["samplers"])


def test_ctrl_c_is_quiet():
    code = (
        "import time, sys; from sgcn import cli; from sgcn.commands import samplers\n"
        "samplers.run = lambda args: (print('ready', flush=True), time.sleep(60))\n"
        "sys.exit(cli.main(['samplers']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of a POSIX shell")
def test_a_reader_that_leaves_is_no_error():
    done = subprocess.run(
        f"{sys.executable} -m sgcn samplers | head -1", shell=True, capture_output=True, text=True
    )
    assert done.stdout.startswith("exact: ")
    assert done.stderr == ""
