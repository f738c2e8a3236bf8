"""Replay a conformance kit, without torch."""
