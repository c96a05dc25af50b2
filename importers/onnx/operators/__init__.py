"""The operators of ONNX, one file per category. The registry imports every file."""
