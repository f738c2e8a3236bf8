"""Small faults planted in copies of an ONNX file, which a control set should notice."""
