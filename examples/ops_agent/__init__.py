"""Owns the operations example: a working copy, a CI stand-in, a forge stand-in and a pretend cluster."""
