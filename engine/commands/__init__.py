"""The commands of `agentctl`, one file each, loaded when they are called: they parse, call and print."""
