"""Owns the shop of the retail example: its database, its storefront and the tools of its agent."""
