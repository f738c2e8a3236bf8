"""The portable conformance kit: written for a verified model, replayed on the machine that deploys it."""
