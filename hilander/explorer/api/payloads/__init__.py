"""What the API answers, one module for each part of the page."""
