"""What the sample apps have in common; it knows none of them."""
