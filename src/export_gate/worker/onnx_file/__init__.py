"""ONNX files without torch: sessions, serialized tensors, affine graphs."""
