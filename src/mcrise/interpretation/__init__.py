"""interpretation."""
