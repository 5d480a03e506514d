"""Does what `lifecycle.decide` says: the only loop, and the people's side of it."""
