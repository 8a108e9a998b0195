"""Models on cells: a partition of the rows by k-means, and one exact model for each part."""
