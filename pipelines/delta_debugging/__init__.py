"""Making a program smaller while something about it stays true: what ``hloforge bisect`` searches with."""
