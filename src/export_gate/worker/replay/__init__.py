"""A conformance kit to comparisons, without torch."""
