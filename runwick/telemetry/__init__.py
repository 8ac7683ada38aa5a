"""One bus of typed events; logs (and later metrics and traces) listen to it."""
