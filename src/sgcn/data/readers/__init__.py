"""Files of others, read with suspicion and some of them at a time.

`files` has what holds for any file; `arrays`, `lines`, `tables`, `jsontext` and `pickles` read one
kind each; `words` numbers what they find.
"""
