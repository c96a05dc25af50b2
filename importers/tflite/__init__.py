"""TFLite models: flatbuffers of builtin operators, or of StableHLO's operators."""
