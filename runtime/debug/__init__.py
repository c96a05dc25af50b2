"""Find out whether a program's results are right, and which pass or compiler is at fault if not."""
