from __future__ import annotations

import socket

from harness.worker.facts import network_use


def test_the_bytes_of_a_connection_are_counted_by_its_interface() -> None:
    before = network_use.carried().get("lo", {"sent": 0, "received": 0, "connections": 0})
    with socket.create_server(("127.0.0.1", 0)) as door:
        one = socket.create_connection(door.getsockname())
        other, _ = door.accept()
        with one, other:
            one.sendall(b"x" * 100_000)
            got = 0
            while got < 100_000:
                got += len(other.recv(65536))
            other.sendall(b"y")
            one.recv(1)  # what is acknowledged counts as sent
            after = network_use.carried()["lo"]
    assert after["connections"] == before["connections"] + 2
    assert after["received"] - before["received"] == 100_001
    assert 100_001 <= after["sent"] - before["sent"] <= 100_003  # and the two that greet


def test_a_process_without_connections_used_no_network() -> None:
    assert all(one["connections"] > 0 for one in network_use.carried().values())
