"""Finding out whether a program's results are right, and what is to blame where they are not."""
