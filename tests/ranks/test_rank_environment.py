from __future__ import annotations

from pathlib import Path

from harness.ranks.node_offer import free_ports
from harness.ranks.rank_environment import environment


def test_compile_caches_are_private_to_a_runs_cell():
    own = {"TRITON_CACHE_DIR": "triton"}
    host = {"HOME": "/home/ada", "TRITON_CACHE_DIR": "/shared"}
    made = environment(host, Path("/run/caches/9f"), own, None)
    assert made["HOME"] == "/home/ada"
    caches = {value for name, value in made.items() if name.endswith(("_DIR", "_PATH"))}
    assert "/run/caches/9f/triton" in caches
    assert all(value.startswith("/run/caches/9f/") for value in caches)


def test_an_allocator_is_preloaded_before_what_was_preloaded_already():
    made = environment({"LD_PRELOAD": "libtrace.so"}, Path("/run/caches/9f"), {}, "/opt/libmine.so")
    assert made["LD_PRELOAD"] == "/opt/libmine.so libtrace.so"
    assert "LD_PRELOAD" not in environment({}, Path("/run/caches/9f"), {}, None)


def test_free_ports_differ():
    found = free_ports(3)
    assert len(set(found)) == 3
    assert all(1024 < port < 65536 for port in found)
