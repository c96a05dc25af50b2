"""The operators of TFLite, one file per category."""
