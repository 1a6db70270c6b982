"""The server: routes, JSON payloads, exports and access checks."""
