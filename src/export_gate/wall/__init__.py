"""What both sides of the wall share, and nothing else: contracts one way, observations the other."""
