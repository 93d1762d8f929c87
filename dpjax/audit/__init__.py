"""Audits: the epsilon that a mechanism's own outputs prove.

counting.py  bounds on epsilon from the counts of an event, and what so many trials can prove
one_run.py   a bound from one run with many canaries, for training
"""
