"""Importing sgcn changes nothing outside of it; the command line prepares its own process."""

from __future__ import annotations

import os
import subprocess
import sys
from textwrap import dedent

from sgcn.commands import startup


def python(program: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", dedent(program)], env=os.environ | more, capture_output=True,
        text=True, check=True, timeout=300,
    )  # fmt: skip


def test_imports_change_nothing():
    """In a process of its own: every module of sgcn, after those that it builds on."""
    done = python("""
        import os, pkgutil, sys, threading
        from importlib import import_module
        import numba, numpy, scipy.sparse, torch
        from numba.np.ufunc import parallel

        torch.set_num_threads(1)

        def threads():
            running = len(os.listdir("/proc/self/task"))
            return torch.get_num_threads(), threading.active_count(), running

        def functions():
            owners = torch, torch.nn, torch.optim, torch.optim.Optimizer, numba, numpy
            found = {(owner.__name__, name): value for owner in owners
                     for name, value in vars(owner).items() if callable(value)}
            return found, {key: dict(vars(value)) for key, value in found.items()
                           if hasattr(value, "__code__")}

        environment, modules = dict(os.environ), dict(sys.modules)
        before, (known, attributes) = threads(), functions()

        import sgcn
        names = [info.name for info in pkgutil.walk_packages(sgcn.__path__, "sgcn.")]
        assert len(names) > 100
        for name in names:
            import_module(name)

        assert {name: sys.modules[name] for name in modules} == modules
        assert None not in [m for name, m in sys.modules.items() if name not in modules]
        assert dict(os.environ) == environment
        assert threads() == before, (threads(), before)
        assert not parallel._is_initialized  # numba's threads have not started
        now, now_attributes = functions()
        assert {key: now[key] for key in known} == known
        assert {key: now_attributes[key] for key in attributes} == attributes
    """)
    assert (done.stdout, done.stderr) == ("", "")


def test_compiling_is_announced_once(tmp_path):
    code = """
        from sgcn.commands.startup import announce_compiling
        announce_compiling(), announce_compiling()
        import numpy as np
        from sgcn.kernels.random import permutation, uniforms
        permutation(5, np.uint64(3)), uniforms(5, np.uint64(3))
    """
    first, second = (python(code, NUMBA_CACHE_DIR=str(tmp_path)).stderr for _ in range(2))
    assert first == startup.COMPILING + "\n"
    assert second == ""


def test_a_program_that_uses_kernels_prints_nothing(tmp_path):
    code = """
        import numpy as np
        from sgcn.kernels.random import uniforms
        uniforms(5, np.uint64(3))
    """
    assert python(code, NUMBA_CACHE_DIR=str(tmp_path)).stderr == ""


def test_scipy_blas_is_skipped_and_can_be_imported_later():
    done = python("""
        import sys
        from sgcn.commands.startup import skip_scipy_blas
        skip_scipy_blas()
        assert "scipy.linalg" not in sys.modules
        import sgcn.kernels.spmm
        print("scipy.linalg" in sys.modules)
        import scipy.linalg
    """)
    assert done.stdout.strip() == "False"


def test_commands_prepare_their_process():
    """A command that computes skips scipy's BLAS; one that does not leaves numba out."""
    program = """
        import sys
        from sgcn.cli import main
        main({argv!r})
        print(*("numba" in sys.modules, "scipy.linalg" in sys.modules), file=sys.stderr)
    """
    assert python(program.format(argv=["samplers"])).stderr == "True False\n"
    refused = python(program.format(argv=["report", "no-run"])).stderr
    assert refused.splitlines()[-1] == "False False"


def test_waiting_threads_sleep_unless_the_user_says_otherwise(monkeypatch):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    startup.wait_passively()
    assert os.environ["OMP_WAIT_POLICY"] == "passive"
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    startup.wait_passively()
    assert os.environ["OMP_WAIT_POLICY"] == "active"
