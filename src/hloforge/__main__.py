"""``python -m hloforge``: the ``hloforge`` command."""

from hloforge.tools.start import main

if __name__ == "__main__":
    main()
