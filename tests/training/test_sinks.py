"""Sinks: every one of them goes on from a checkpoint as if training had never stopped."""

from __future__ import annotations

import io
import json
import sys

import pytest

from learning import early, labelled, small_model
from sgcn import SgcnError, fit
from sgcn.training.events import EpochEvent, ProbeEvent, ScoreEvent, StepEvent, event_of
from sgcn.training.history import History
from sgcn.training.sinks import SINKS, JsonLines, Memory, Progress, Sink, load_states, states

GRAPH = labelled()
TIMES = ("seconds", "sampling", "transfer", "compute", "evaluation")


class Counted(Sink):
    """A sink of a user, with a state."""

    def __init__(self) -> None:
        self.steps, self.resumed = 0, False

    def emit(self, event) -> None:
        self.steps += isinstance(event, StepEvent)

    def state(self):
        return {"steps": self.steps}

    def resume(self, state) -> None:
        self.steps, self.resumed = state["steps"], True


class StoppedError(Exception):
    pass


def train(folder, sinks, stop_at=None):
    def stopping(engine, loader, step):
        if step == stop_at:
            raise StoppedError

    return fit(
        small_model(), GRAPH, estimator=early("sgcn++", gap=3), epochs=4, batch_size=8, sinks=sinks,
        state=folder / "state", checkpoint_seconds=0.0, callbacks=[stopping],
    )  # fmt: skip


def timeless(event) -> dict:
    return {key: value for key, value in vars(event).items() if key not in TIMES}


def test_any_sink_resumes(tmp_path):
    made = {}
    for name in ("stopped", "straight"):
        folder = tmp_path / name
        folder.mkdir()
        for stop_at in (11, None) if name == "stopped" else (None,):
            out = io.StringIO()
            sinks = [Counted(), JsonLines(folder / "m"), Memory(), Progress(out), Memory()]
            if stop_at is None:
                assert train(folder, sinks).steps == 16
            else:
                with pytest.raises(StoppedError):
                    train(folder, sinks, stop_at)
        made[name] = sinks, out.getvalue(), folder / "m"
    (ours, said, file), (theirs, wanted, other) = made["stopped"], made["straight"]
    assert ours[0].resumed
    assert not theirs[0].resumed
    assert ours[0].steps == theirs[0].steps == 16
    for k in (2, 4):
        assert list(map(timeless, ours[k].events)) == list(map(timeless, theirs[k].events))
    lines = [
        [{k: v for k, v in json.loads(line).items() if k not in TIMES}
         for line in path.read_text().splitlines()] for path in (file, other)
    ]  # fmt: skip
    assert lines[0] == lines[1]
    last = [line.rpartition(",")[0] for line in wanted.splitlines()]
    shown = [line.rpartition(",")[0] for line in said.splitlines()]
    assert shown  # the epochs that the second part trained
    assert shown == last[-len(shown) :]


def test_a_sink_of_another_kind_starts_anew(tmp_path):
    with pytest.raises(StoppedError):
        train(tmp_path, [Memory()], 11)
    late = Counted()
    train(tmp_path, [late])
    assert not late.resumed
    assert 0 < late.steps < 16


def test_the_history_of_a_run_that_went_on(tmp_path):
    """Rows by kind, each kind with the same columns; a checkpoint has what came before it."""
    with pytest.raises(StoppedError):
        train(tmp_path, (), 11)
    history = train(tmp_path, ()).history
    assert [row["step"] for row in history.steps] == list(range(16))
    assert [row["epoch"] for row in history.epochs] == list(range(4))
    assert history.scores[-1]["validation_f1_micro"] == history.epochs[-1]["validation_f1_micro"]
    for rows in (history.steps, history.scores, history.epochs):
        assert len({tuple(row) for row in rows}) == 1
    assert len(history.rows()) == len(history.events) == 16 + len(history.scores) + 4
    assert repr(history) == f"History of 16 steps, {len(history.scores)} scores and 4 epochs"


def test_a_history_is_of_a_memory(tmp_path):
    kept = Memory()
    assert train(tmp_path / "a", [Counted(), kept]).history.events == kept.events
    with pytest.raises(SgcnError, match="expected a Memory among its sinks"):
        _ = train(tmp_path / "b", [Counted()]).history


def test_a_history_as_a_data_frame(monkeypatch):
    history = History([ProbeEvent(3, 0.1, 0.2, 0.3), EpochEvent(0, 4, 0.5, {"loss": 1.0}, 2.0)])
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SgcnError, match=r"pandas is not installed, .*history\.rows"):
        history.to_pandas()
    monkeypatch.undo()
    pandas = pytest.importorskip("pandas")
    frame = history.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["event"].tolist() == ["probe", "epoch"]
    with pytest.raises(SgcnError, match="kind is 'scores', expected one of step, score"):
        history.to_pandas("scores")
    assert history.to_pandas("epoch")["validation_loss"].tolist() == [1.0]


def test_states_have_names():
    sinks = [Memory(), Sink(), Counted(), Memory()]
    sinks[2].steps = 3
    saved = states(sinks)
    assert list(saved) == ["Memory 1", "Counted 1", "Memory 2"]
    other = Counted()
    load_states([other], saved)
    assert other.steps == 3


@pytest.mark.parametrize("kind", SINKS.values())
def test_a_sink_of_ours_has_a_state(kind):
    assert kind.state is not Sink.state
    assert kind.resume is not Sink.resume


def test_no_file_before_training_starts(tmp_path):
    sink = JsonLines(tmp_path / "m")
    sink.close()
    assert not (tmp_path / "m").exists()


def test_events_come_back():
    for event in (
        StepEvent(
            epoch=0, step=1, loss=0.5, gradient_norm=0.25, norm_growth=1.0, snapshot=True,
            restart=False, seconds=1.0, sampling=0.0, transfer=0.0, compute=0.1,
        ),
        ScoreEvent(0, 1, {"f1_micro": 0.5}, True, 1.0, 0.1),
        EpochEvent(0, 4, 0.5, None, 1.0),
        ProbeEvent(3, 0.1, 0.05, 0.05),
    ):  # fmt: skip
        assert event_of(json.loads(json.dumps(vars(event)))) == event


def test_what_a_callback_returns_is_an_event():
    memory, event = Memory(), ProbeEvent(0, 0.1, 0.05, 0.05)
    fit(small_model(), GRAPH, epochs=1, sinks=[memory], callbacks=[lambda *_: event])
    assert memory.events[0] is event
