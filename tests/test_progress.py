"""The progress bar: share, rate and remaining time of this run."""

import io

import pytest

from dpjax.sweep.progress import bar


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self):
        return True


def lines(stream, reports):
    """What is written for (second, done) reports of 1000 trials."""
    clock = iter([second for second, _ in reports])
    report = bar("laplace", stream, lambda: next(clock))
    for _, done in reports:
        report(done, 1000)
    return stream.getvalue()


def test_a_line_a_minute_and_one_at_the_end():
    out = lines(io.StringIO(), [(0, 0), (30, 100), (60, 250), (61, 260), (200, 1000)])
    assert out.splitlines() == [
        "laplace [                        ]   0.0 %",
        "laplace [######                  ]  25.0 %, 4.17 trials/s, 3 min left",
        "laplace [########################] 100.0 %, 5 trials/s, 3 min",
    ]


def test_rate_and_remaining_time_leave_out_what_a_checkpoint_had_done():
    out = lines(io.StringIO(), [(0, 800), (100, 900)])
    assert out.splitlines()[-1].endswith("90.0 %, 1 trials/s, 2 min left")


def test_a_bar_on_a_terminal_moves_ten_times_a_second():
    out = lines(Terminal(), [(0, 0), (0.05, 10), (0.2, 400), (0.4, 1000)])
    assert out.count("\r") == 3
    assert out.count("\n") == 1
    assert "40.0 %, 2 k trials/s, 0.3 s left" in out


@pytest.mark.parametrize(
    ("rate", "text"),
    [(3, "3 trials"), (1234, "1.23 k trials"), (5e6, "5 M trials"), (1.16e9, "1.16 G trials")],
)
def test_rates(rate, text):
    clock = iter([0, 1000])
    stream = io.StringIO()
    report = bar("x", stream, lambda: next(clock))
    report(0, int(2000 * rate))
    report(int(1000 * rate), int(2000 * rate))
    assert f"{text}/s, 17 min left" in stream.getvalue()


def test_hours():
    assert "2 h 47 min left" in lines(io.StringIO(), [(0, 0), (10_000, 500)])


def test_nothing_to_do():
    assert "100.0 %" in lines(io.StringIO(), [(0, 1000)])
