"""How the default method is trained."""
