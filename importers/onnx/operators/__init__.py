"""The operators of ONNX, a file a category. Every file is imported by the registry."""
