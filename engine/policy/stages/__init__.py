"""Owns the stages of the compiler; each takes the Model one step further and adds its findings."""
