"""Workloads written down operator by operator, in a few letters each."""
