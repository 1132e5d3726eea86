"""`python -m muniment`: the command line."""

from muniment.cli.app import main

if __name__ == "__main__":
    main()
