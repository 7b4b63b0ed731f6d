"""Benchmarks: ours and others, interleaved in one run. `sgcn bench` runs them."""
