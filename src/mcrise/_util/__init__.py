"""Helpers that know nothing of images, models or explanations.

- `validation`: JSON and TOML that came from outside, checked by type and range.
- `text`: words joined into lists, control characters made visible.
- `files`: a file replaced as a whole or not at all; a lock that names its holder.
- `threads`: how many cores there are, and linear algebra on one of them.
- `array_eq`: `==` for dataclasses that hold arrays.
- `plugins`: objects that other packages offer by entry points.

Nothing here imports from the rest of mcrise except `errors`. A helper belongs here when a reader
would expect it in any program; a helper that needs the word "mask" or "model" does not.
"""
