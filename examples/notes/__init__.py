"""Owns the notes of the smallest example: one text file per note in a folder of one's own."""
