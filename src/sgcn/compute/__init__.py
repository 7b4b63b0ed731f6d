"""Where sums are made: operators, buffers, the exact pass; no other room knows of devices."""
