"""Solutions along C, for all folds of a search at once."""
