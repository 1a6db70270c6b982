"""The version of the package, which stored files name."""

VERSION = "0.1.0"
