"""The explorer: payloads, server and static page; and the report, one file to mail."""
