from __future__ import annotations

import socket
import urllib.error
import urllib.request

import pytest

from harness.ranks.node_offer import free_ports
from harness.worker import horovod
from harness.worker.contracts import Unsupported
from harness.worker.place import Place


class Fake:
    def __init__(self, size: int) -> None:
        self._size = size

    def init(self) -> None:
        """Meet nobody."""

    def size(self) -> int:
        return self._size

    def mpi_built(self) -> bool:
        return False


def ask(port: int, path: str, method: str = "GET", body: bytes | None = None) -> bytes:
    url = f"http://127.0.0.1:{port}{path}"
    request = urllib.request.Request(url, data=body, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        content: bytes = answer.read()
    return content


def test_the_first_rank_keeps_a_board_of_what_each_rank_put_there(monkeypatch):
    (port,) = free_ports(1, "127.0.0.1")
    monkeypatch.setenv("HOROVOD_FUSION_THRESHOLD", "")
    monkeypatch.setenv(horovod.PORT, str(port))
    monkeypatch.setenv("MASTER_PORT", str(port))
    meeting = horovod.prepare({"bucket_mb": 2}, Place(0, 2, 0, 2, "here", "bakeoff"))
    try:
        with pytest.raises(urllib.error.HTTPError) as told:
            ask(port, "/global/0")
        told.value.close()
        assert told.value.code == 404
        ask(port, "/global/0", "PUT", b"\x00\xff")
        assert ask(port, "/global/0") == b"\x00\xff"
        ask(port, "/global/0", "DELETE")
    finally:
        meeting.close()


@pytest.mark.parametrize(("address", "is_reached"), [("127.0.0.1", False), ("cn1", True)])
def test_ranks_of_one_machine_meet_where_no_other_one_gets_at(monkeypatch, address, is_reached):
    (port,) = free_ports(1)
    monkeypatch.setenv(horovod.ADDRESS, address)
    monkeypatch.setenv(horovod.PORT, str(port))
    monkeypatch.setenv("MASTER_PORT", str(port))
    meeting = horovod.prepare({}, Place(0, 2, 0, 2, "here", "bakeoff"))
    try:
        with socket.socket() as other:
            assert (other.connect_ex(("127.0.0.2", port)) == 0) == is_reached
    finally:
        meeting.close()


def test_a_board_that_horovodrun_keeps_is_not_put_up_again(monkeypatch):
    (port,) = free_ports(1, "127.0.0.1")
    monkeypatch.setenv("HOROVOD_FUSION_THRESHOLD", "")
    monkeypatch.setenv(horovod.PORT, str(port))
    monkeypatch.setenv("MASTER_PORT", "1")
    meeting = horovod.prepare({}, Place(0, 2, 0, 2, "here", "bakeoff"))
    with pytest.raises(urllib.error.URLError):
        ask(port, "/global/0")
    meeting.close()


def test_ranks_that_see_only_themselves_do_not_train(monkeypatch):
    monkeypatch.setenv("HOROVOD_FUSION_THRESHOLD", "")
    meeting = horovod.prepare({}, Place(1, 2, 1, 2, "here", "openmpi"))
    with pytest.raises(Unsupported, match="sees 1 of 2 ranks: it is built without MPI"):
        meeting.open(Fake(1))
    meeting.open(Fake(2))
    meeting.close()


def test_a_rank_waits_for_the_board_of_a_first_rank_that_is_late(monkeypatch):
    (port,) = free_ports(1, "127.0.0.1")
    monkeypatch.setenv("HOROVOD_FUSION_THRESHOLD", "")
    monkeypatch.setenv(horovod.ADDRESS, "127.0.0.1")
    monkeypatch.setenv(horovod.PORT, str(port))
    monkeypatch.setenv("MASTER_PORT", str(port))
    late = []

    def sleep(_seconds: float) -> None:
        late.append(horovod.prepare({}, Place(0, 2, 0, 2, "here", "bakeoff")))

    monkeypatch.setattr(horovod.time, "sleep", sleep)
    meeting = horovod.prepare({}, Place(1, 2, 1, 2, "here", "bakeoff"))
    meeting.open(Fake(2))
    (board,) = late
    board.close()
