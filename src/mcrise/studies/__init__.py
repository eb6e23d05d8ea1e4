"""Studies: many images, several methods, on the cores of this machine or on a cluster."""
