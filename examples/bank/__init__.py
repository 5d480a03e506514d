"""Owns the bank of the injection demo: accounts, payees, transfers, and bills that strangers wrote."""
