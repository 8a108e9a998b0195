"""Estimators that choose their own parameters."""
