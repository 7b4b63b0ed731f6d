"""Training: the loop, its optimisers, checkpoints, events and the sinks that listen."""
