"""One program for a range of sizes: arrays of the largest sizes, with masks where padding would be read."""
