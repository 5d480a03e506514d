"""Owns the smallest file tools: listing a folder of one's own and deleting one file in it."""
