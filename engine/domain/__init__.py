"""The ground floor: the words and facts of the Runtime, pure and free of I/O."""
