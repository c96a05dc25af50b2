"""The operators, a file for each category."""
