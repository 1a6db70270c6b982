"""The port and the address of the server."""

import socket

import pytest

from hilander.errors import SettingError
from hilander.explorer.api.listening import bind, make_url


def test_a_taken_port_is_an_error_or_is_replaced_by_a_free_one():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SettingError, match="--port"):
            bind("127.0.0.1", port, exact=True)
        with bind("127.0.0.1", port, exact=False) as other:
            assert other.getsockname()[1] != port


@pytest.mark.parametrize(
    ("host", "token", "start", "end"),
    [
        ("127.0.0.1", None, "http://127.0.0.1:", "/"),
        ("::1", None, "http://[::1]:", "/"),
        ("127.0.0.1", "secret", "http://127.0.0.1:", "/?token=secret"),
    ],
)
def test_the_url_has_host_port_and_token(host, token, start, end):
    with bind("127.0.0.1", 0, exact=False) as listening:
        port = listening.getsockname()[1]
        assert make_url(host, listening, token) == f"{start}{port}{end}"
