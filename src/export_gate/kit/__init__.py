"""The portable conformance kit: made of a verified model, replayed on the machine that deploys it."""
