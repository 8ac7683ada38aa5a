"""One suite that every store passes. A difference between stores is a named capability, never a silent skip."""
