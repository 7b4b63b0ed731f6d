"""Row tables: histories in memory and on disk."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from sgcn.compute.buffers import Pool
from sgcn.rows import History, LazyRows, allocate, store_of

DTYPES = [torch.float32, torch.bfloat16]
WHERE = ["memory", "disk", "elsewhere"]


@pytest.fixture(params=[(d, w) for d in DTYPES for w in WHERE], ids=str)
def table(request, tmp_path) -> History:
    dtype, where = request.param
    make = {
        "memory": None,
        "disk": partial(allocate, folder=tmp_path / "tables"),
        "elsewhere": Elsewhere,
    }
    return History(dtype, make_store=make[where])


class Elsewhere:
    """A store without a table: a dictionary of rows, as one on another machine would look."""

    table = None

    def __init__(self, rows: int, columns: int, dtype: torch.dtype) -> None:
        self.shape, self.dtype = (rows, columns), dtype
        self.rows = {k: torch.zeros(columns, dtype=dtype) for k in range(rows)}

    def read(self, ids):
        return torch.stack([self.rows[k] for k in ids.tolist()]).float()

    def write(self, ids, rows):
        ids = range(self.shape[0]) if ids is None else ids.tolist()
        self.rows.update(zip(ids, rows.detach().to(self.dtype), strict=True))

    def times(self, ids, weight):
        return self.read(torch.arange(self.shape[0]) if ids is None else ids) @ weight


def rows(n: int, seed: int = 0) -> torch.Tensor:
    """Numbers that bfloat16 holds exactly."""
    return torch.randint(-100, 100, (n, 3), generator=torch.Generator().manual_seed(seed)).float()


def test_assign_read_write(table):
    first = rows(10)
    table.assign(first, 0.0)
    ids = torch.tensor([7, 0, 7])
    assert table.read(ids).dtype == torch.float32
    assert torch.equal(table.read(ids), first[ids])
    table.write(torch.tensor([7, 2]), rows(2, 1))
    wanted = first.clone()
    wanted[[7, 2]] = rows(2, 1)
    assert torch.equal(table.read(torch.arange(10)), wanted)
    assert table.valid is None
    assert table.nbytes == 30 * (4 if table.dtype == torch.float32 else 2)


def test_ids_of_32_bits(table):
    table.assign(rows(10), 0.0)
    ids = torch.tensor([3, 9], dtype=torch.int32)
    table.write(ids, rows(2, 1))
    assert torch.equal(table.read(ids), rows(2, 1))


def test_assign_some_marks_the_others(table):
    table.assign_some(torch.tensor([4, 1]), rows(2), nodes=6, norm=0.0)
    assert table.valid.tolist() == [False, True, False, False, True, False]
    assert torch.equal(table.read(torch.tensor([4, 1])), rows(2))
    table.assign_some(torch.tensor([0]), rows(1, 1), nodes=6, norm=0.0)
    assert table.valid.tolist() == [True] + 5 * [False]
    table.assign(rows(6), 0.0)
    assert table.valid is None


def test_what_is_written_has_no_graph(table):
    table.assign(rows(4).requires_grad_() * 2, 0.0)
    table.write(torch.tensor([0]), rows(1).requires_grad_() * 2)
    assert not table.read(torch.arange(4)).requires_grad


def test_tables_on_disk_leave_no_file(tmp_path):
    table = History(make_store=partial(allocate, folder=tmp_path / "deep" / "down"))
    table.assign(rows(1000), 0.0)
    table.assign(rows(2000), 0.0)  # another size: another mapping
    assert torch.equal(table.read(torch.arange(2000)), rows(2000))
    assert list(tmp_path.rglob("*rows*")) == []


def test_tables_on_disk_are_written_in_place(tmp_path):
    table = History(make_store=partial(allocate, folder=tmp_path))
    table.assign(rows(10), 0.0)
    place = table.all_rows().data_ptr()
    table.assign(rows(10, 1), 0.0)
    assert table.all_rows().data_ptr() == place


def test_float32_in_memory_is_taken_over():
    given = rows(10)
    table = History()
    table.assign(given, 0.0)
    assert table.all_rows().data_ptr() == given.data_ptr()


def test_features_of_other_types():
    for x in (np.ones((3, 2), np.float64), np.ones((3, 2), np.int8), np.ones((2, 3), np.float32).T):
        features = store_of(x)
        assert features.dtype == features.table.dtype == torch.float32
        assert LazyRows(features).is_all
        assert torch.equal(LazyRows(features).dense(), torch.ones(3, 2))


def test_a_buffer_is_used_again_when_it_is_free():
    pool = Pool()
    first = pool.take(600, 500)
    place = first.data_ptr()
    other = pool.take(600, 500)
    assert other.data_ptr() != place
    view = first[3:, 1:].numpy()  # a part of it, by way of NumPy
    view[:] = 7.0
    del first
    assert pool.take(600, 500).data_ptr() != place
    assert (view == 7.0).all()
    del view
    again = pool.take(610, 500)  # a little larger fits
    assert again.data_ptr() == place
    assert again.shape == (610, 500)
    assert pool.take(3, 4).shape == (3, 4)


def test_the_pool_lets_go():
    """What is kept stays near the most that was in use: 12 small ones, then a single large one."""
    pool = Pool()
    taken = [pool.take(600 + k, 500) for k in range(12)]
    del taken
    held = pool.take(6000, 500)  # none of them fits
    kept = sum(len(buffer) for buffer, _ in pool._kept)
    assert held.numel() < kept <= Pool.slack * pool.most
    assert pool.most < 1.3 * sum(600 + k for k in range(12)) * 500


def test_large_buffers_outlive_small_ones():
    """A snapshot, steps of another size, and a snapshot again: nothing new is made for it."""
    pool = Pool()
    for _ in range(3):
        snapshot = [pool.take(9000, 500) for _ in range(6)]
        made = pool.made
        del snapshot
        for rows in (600, 700, 1400):
            step = [pool.take(rows, 500) for _ in range(3)]
            del step
    assert pool.made == made
    for _ in range(50):  # and steps of ever new sizes do not add up
        step = [pool.take(600 + 37 * _, 500)]
        del step
    assert sum(len(buffer) for buffer, _ in pool._kept) <= Pool.slack * pool.most


@pytest.mark.parametrize("width", [1, 31, 32, 33, 70, 128])
def test_products_of_sparse_rows_at_every_width(width):
    """Stripes of lanes and what is left beside them; ids repeat, and some rows are empty."""
    rng = np.random.default_rng(width)
    x = sp.random_array((40, 9), density=0.2, rng=rng, dtype=np.float32, format="csr")
    ids = torch.from_numpy(rng.integers(0, 40, 25).astype(np.int32))
    w = torch.from_numpy(rng.normal(size=(9, width)).astype(np.float32)).requires_grad_()
    g = torch.from_numpy(rng.normal(size=(25, width)).astype(np.float32))
    dense = torch.from_numpy(x.toarray()[ids.numpy()])
    out = LazyRows(store_of(x), ids) @ w
    torch.testing.assert_close(out, dense @ w, rtol=1e-5, atol=1e-6)
    (by_w,) = torch.autograd.grad(out, w, g)
    torch.testing.assert_close(by_w, dense.T @ g, rtol=1e-5, atol=1e-5)
