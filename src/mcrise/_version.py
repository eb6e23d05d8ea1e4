"""The version, said once."""

VERSION = "1.0.0rc1"
