"""How things are shown to people and programs: pure rendering of Runs, events, findings and errors."""
