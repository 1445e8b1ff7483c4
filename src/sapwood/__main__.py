"""`python -m sapwood`: the command line."""

from sapwood.cli import main

main()
