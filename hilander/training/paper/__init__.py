"""How the published model is trained."""
