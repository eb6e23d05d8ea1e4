"""Audits: what a model depends on over many images, class by class."""
