"""Let Horovod's ranks find each other, for the adapters that can use it.

Under our own launchers rank 0 keeps the board on which Horovod's Gloo leaves its addresses: values
by name over HTTP, 404 where nothing was put yet (horovod/common/gloo/http_store.cc). Under an MPI
or under horovodrun, Horovod meets by itself.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Dict, Mapping, Optional

from harness.worker.contracts import Unsupported
from harness.worker.place import Place

CURE = "build it: bakeoff env create torch@horovod tensorflow@horovod"
LOOPBACK = "127.0.0.1"
ADDRESS, PORT = "HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT"


class Meeting:
    """Where the ranks find each other."""

    def __init__(self, place: Place, board: Optional[ThreadingHTTPServer]) -> None:
        self._place = place
        self._board = board

    def open(self, horovod: Any) -> None:
        """Start Horovod; its ranks meet in here, or each would train alone and call it many."""
        if self._board is None and _is_ours(self._place):
            _await_board()
        horovod.init()
        if horovod.size() != self._place.size:
            raise Unsupported(
                "Horovod sees {} of {} ranks: it is built {} MPI, and they were started by {}; "
                "build it where mpicxx is on the PATH, or use the launcher ssh or local".format(
                    horovod.size(),
                    self._place.size,
                    "with" if horovod.mpi_built() else "without",
                    self._place.launcher,
                )
            )

    def close(self) -> None:
        """Take the board down."""
        if self._board is not None:
            self._board.shutdown()
            self._board.server_close()


def prepare(factors: Mapping[str, Any], place: Place) -> Meeting:
    """Set what Horovod reads while it is imported, and put up the board where it is ours."""
    megabytes = factors.get("bucket_mb")
    if megabytes is not None:
        os.environ["HOROVOD_FUSION_THRESHOLD"] = str(int(megabytes) * 2**20)
    if place.rank != 0 or not _is_ours(place):
        return Meeting(place, None)
    # Ranks of this node alone meet where no other machine gets at. A node's name is no address to
    # listen at: /etc/hosts may lead it to the loopback.
    where = LOOPBACK if os.environ.get(ADDRESS) == LOOPBACK else ""
    board = ThreadingHTTPServer((where, int(os.environ[PORT])), _handler({}))
    board.daemon_threads = True
    threading.Thread(target=board.serve_forever, daemon=True).start()
    return Meeting(place, board)


def _is_ours(place: Place) -> bool:
    """Tell whether the ranks meet at our board, which stands where all meet; not horovodrun's."""
    told = os.environ.get(PORT)
    return (
        place.launcher == "bakeoff" and told is not None and told == os.environ.get("MASTER_PORT")
    )


def _await_board() -> None:
    """Wait until rank 0 has put the board up: Horovod's own patience ends the process in seconds.

    A rank 0 that never does ends the trial, and with it this rank.
    """
    while not _is_up(os.environ[ADDRESS], int(os.environ[PORT])):
        time.sleep(0.05)


def _is_up(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=5.0).close()
    except OSError:
        return False
    return True


def facts(horovod: Any) -> Dict[str, Any]:
    """Name what carries the data."""
    if horovod.nccl_built():
        return {"collectives": "horovod over nccl"}
    return {"collectives": "horovod over {}".format("mpi" if horovod.mpi_enabled() else "gloo")}


def _handler(values: Dict[str, bytes]) -> Any:
    class Board(BaseHTTPRequestHandler):
        """Keep what is put, give what is there."""

        def do_PUT(self) -> None:
            values[self.path] = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self._answer(200, b"")

        def do_GET(self) -> None:
            value = values.get(self.path)
            self._answer(404 if value is None else 200, value or b"")

        def do_DELETE(self) -> None:
            self._answer(200, b"")

        def log_message(self, *_: Any) -> None:
            """Say nothing: a rank's stderr is for its faults."""

        def _answer(self, code: int, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Board
