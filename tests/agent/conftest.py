from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.agent.spoken import Agent

WITHOUT_GROUPS = (
    "from harness.agent import memory_limit, serve\n"
    "memory_limit.own_group = lambda: None\n"
    "serve.main(None)\n"
)


@pytest.fixture
def start_agent(tmp_path: Path) -> Iterator[Callable[..., Agent]]:
    agents: list[Agent] = []

    def start(*argv: str) -> Agent:
        agents.append(Agent(tmp_path, *(argv or ("-m", "harness.agent"))))
        return agents[-1]

    yield start
    for agent in agents:
        agent.end()


@pytest.fixture
def agent(start_agent: Callable[..., Agent]) -> Agent:
    return start_agent()
