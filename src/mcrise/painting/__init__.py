"""painting."""
