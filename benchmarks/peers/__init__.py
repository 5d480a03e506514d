"""Owns the benchmark of peers: the same loop and the same kill for other frameworks and for this engine.

python -m benchmarks.peers.setup --into .bench/peers
python -m benchmarks.peers --envs .bench/peers [--turns 10,100,1000] [--only NAME,...]
"""
