"""Files of others, read with suspicion and some of them at a time.

`files` has what holds for any file; `arrays`, `tables`, `jsontext` and `pickles` read one kind
each; `fields` has text as they find it, and the numbers of names.
"""
