"""Dispatching: prepared, sent, answered with a receipt."""
