"""ONNX models to programs: ``read_onnx`` (reader.py). ``operators/`` has a file per category."""
