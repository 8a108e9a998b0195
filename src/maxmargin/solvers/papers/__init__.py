"""One file per published algorithm, and the parts that several of them share."""
