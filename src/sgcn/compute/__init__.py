"""Where sums are made: operators, buffers and the exact pass; the only room that knows kernels."""
