"""The wire: the serialization profile, JSON in and out with every limit, and the types a payload may have."""
