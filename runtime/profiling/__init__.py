"""Profiles of a program: its dispatches, the operations that they compute, counts and a roofline."""
