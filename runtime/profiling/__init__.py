"""Where the time of a program goes: its dispatches, what they compute, counts and a roofline."""
