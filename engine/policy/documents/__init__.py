"""Owns the shapes of the documents, as pydantic models with places."""
