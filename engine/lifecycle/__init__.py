"""The life of one Run, pure: machine, fold, and what to do next."""
