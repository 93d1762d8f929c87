"""`python -m dpjax` is the command `dpjax`."""

from dpjax.cli import main

main(prog_name="dpjax")
