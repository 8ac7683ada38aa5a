"""The stores: one folder each, with the same file names in each; they never see each other."""
