"""One attempt from its first to its last step: decode, providers, handler, cleanup, and what all of it cost."""
