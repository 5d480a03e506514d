"""The runner of test/v1: scripted proposals, people, state and time, played through the real engine."""
