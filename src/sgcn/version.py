"""The version of this package; low modules take it from here, not from the package above them."""

__version__ = "0.1.0"
