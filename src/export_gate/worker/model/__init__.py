"""The project's code: factories, calls, state, and what makes a module unfit for a check."""
