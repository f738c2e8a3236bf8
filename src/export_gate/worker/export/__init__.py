"""Export a fresh module to an ExportedProgram, and read the program's axes and operators."""
