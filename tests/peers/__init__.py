"""The comparison with other job systems; none of them is installed here."""
