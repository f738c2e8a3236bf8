"""Everything right of the wall: runs under the project's interpreter, imports no driver package."""
