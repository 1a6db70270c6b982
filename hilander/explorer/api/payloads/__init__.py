"""JSON payloads of the API, one module for each part of the page."""
