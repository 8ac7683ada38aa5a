"""The benchmarks, at the smallest size: that they measure what they say, never how fast anything is."""
