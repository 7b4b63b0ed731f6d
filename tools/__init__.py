"""What makes the graphs in the box, the pictures and the tables of the docs; not installed."""
