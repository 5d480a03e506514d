"""Owns what a provider is sent: wire names, wire ids and the projection of neutral messages."""
