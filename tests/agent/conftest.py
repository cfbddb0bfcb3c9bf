from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.agent.spoken import Agent

WITHOUT_GROUPS = (
    "from harness.agent import memory, serve\nmemory.own_group = lambda: None\nserve.main(None)\n"
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
