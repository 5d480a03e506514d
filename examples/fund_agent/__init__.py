"""Owns the tools of the fund research example; `docs/fund-agent.md` describes the files they read."""
