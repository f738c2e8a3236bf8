"""One model, from eager references to verified targets."""
