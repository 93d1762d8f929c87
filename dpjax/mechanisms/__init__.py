"""Pure functions `mechanism(key, value, *, scale, ...) -> answer`, one family a file."""
