"""The project's code: factories, calls, state, and facts that make a module unfit for a check."""
