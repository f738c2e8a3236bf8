"""A fresh module to an ExportedProgram, and what the program says about axes and operators."""
