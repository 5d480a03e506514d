"""Owns what pytest leaves alone here: broken files that `lint` is shown, no tests of a policy."""

collect_ignore_glob = ["*.test.yaml"]
