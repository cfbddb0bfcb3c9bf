"""Pretend to be several hosts on one machine: namespaces with names, sshd and cables.

Each host has its own network, name, process tree, /run and /dev/shm; a bridge in a network of its
own joins them, so that the machine itself is left alone. A host can be switched off (all its
processes die and its cable goes dead, as when a plug is pulled) and booted again, which starts the
services that were added to it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

_BOOT = Path(__file__).with_name("host.sh")
_PATIENCE_S = 30.0
_SSHD = """\
Port 22
HostKey {folder}/hostkey
AuthorizedKeysFile {folder}/key.pub
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
PidFile /run/sshd.pid
UseDNS no
MaxStartups 100
AcceptEnv *
"""
_SSH = """\
Host *
  User root
  IdentityFile {folder}/key
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
  ConnectTimeout 5
"""


class Hosts:
    """A login host ``h0`` and ``count`` nodes ``h1`` …; those named wide may use every core."""

    def __init__(self, folder: Path, count: int, *, wide: Sequence[str] = ()) -> None:
        self.folder = folder
        self._wide = ("h0", *wide)
        self.names = tuple(f"h{number}" for number in range(count + 1))
        self._mark = f"bo{os.getpid()}"
        self._inits: dict[str, int] = {}
        self._outer: dict[str, subprocess.Popen[bytes]] = {}
        self._services: list[Callable[[str], None]] = []

    @property
    def nodes(self) -> tuple[str, ...]:
        """The hosts that compute."""
        return self.names[1:]

    @property
    def ssh(self) -> str:
        """The command that reaches any of them from any of them."""
        return f"ssh -F {self.folder / 'ssh_config'}"

    @property
    def ssh_on_the_path(self) -> dict[str, str]:
        """The environment in which a program that calls plain ``ssh`` gets that command."""
        wrapper = self.folder / "bin" / "ssh"
        wrapper.parent.mkdir(exist_ok=True)
        wrapper.write_text(
            f'#!/bin/sh\nexec {shutil.which("ssh")} -F {self.folder}/ssh_config "$@"\n'
        )
        wrapper.chmod(0o755)
        return {"PATH": f"{wrapper.parent}:{os.environ['PATH']}"}

    def __enter__(self) -> Hosts:
        for name in ("key", "hostkey"):
            keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name)]
            subprocess.run(keygen, check=True)
        for name, text in (("sshd_config", _SSHD), ("ssh_config", _SSH)):
            (self.folder / name).write_text(text.format(folder=self.folder))
        lines = [f"10.77.0.{10 + n} {name}" for n, name in enumerate(self.names)]
        (self.folder / "hosts").write_text("\n".join(["127.0.0.1 localhost", *lines, ""]))
        try:
            self._lay_cables()
            for name in self.names:
                self.boot(name)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for name in list(self._inits):
            self._kill(name)
        for name in ("sw", *self.names):
            _ip("netns", "delete", self._net(name), check=False)

    def _net(self, name: str) -> str:
        return f"{self._mark}-{name}"

    def _lay_cables(self) -> None:
        switch = self._net("sw")
        _ip("netns", "add", switch)
        _ip("-n", switch, "link", "add", "br0", "type", "bridge")
        _ip("-n", switch, "link", "set", "br0", "up")
        for number, name in enumerate(self.names):
            net, port = self._net(name), f"p{name}"
            _ip("netns", "add", net)
            _ip("-n", net, "link", "set", "lo", "up")
            cable = ("name", "eth0", "netns", net, "type", "veth", "peer", "name", port)
            _ip("link", "add", *cable, "netns", switch)
            _ip("-n", switch, "link", "set", port, "master", "br0", "up")
            _ip("-n", net, "addr", "add", f"10.77.0.{10 + number}/24", "dev", "eth0")
            _ip("-n", net, "link", "set", "eth0", "up")

    def serve(self, start: Callable[[str], None]) -> None:
        """Start a service on every host, now and whenever one is booted again."""
        self._services.append(start)
        for name in self.names:
            start(name)

    def boot(self, name: str) -> None:
        """Switch a host on."""
        _ip("-n", self._net("sw"), "link", "set", f"p{name}", "up")
        ready = self.folder / f"{name}.ready"
        ready.unlink(missing_ok=True)
        spaces = ("--uts", "--ipc", "--mount", "--pid", "--fork", "--mount-proc")
        with (self.folder / f"{name}.console").open("ab") as console:
            outer = subprocess.Popen(
                [
                    *self._pinned(name),
                    *("nsenter", f"--net=/run/netns/{self._net(name)}"),
                    *("unshare", *spaces, "--propagation", "private"),
                    *("bash", str(_BOOT), name, str(self.folder)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                start_new_session=True,
            )
        children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
        _await(lambda: ready.exists() and bool(children.read_text().split()), f"{name} to boot")
        self._inits[name] = int(children.read_text().split()[0])
        self._outer[name] = outer
        for start in self._services:
            start(name)

    def _pinned(self, name: str) -> tuple[str, ...]:
        """Give each node a core of its own, as far as there are any: nodes that share one would
        slow each other down, which nodes never do. The login host may use them all."""
        if name in self._wide:
            return ()
        cores = sorted(os.sched_getaffinity(0))
        return ("taskset", "--cpu-list", str(cores[self.nodes.index(name) % len(cores)]))

    def power_off(self, name: str) -> None:
        """Pull a host's plug: no farewell leaves it."""
        self.cut(name)
        self._kill(name)

    def _kill(self, name: str) -> None:
        os.kill(self._inits.pop(name), signal.SIGKILL)
        self._outer.pop(name).wait()

    def processes(self, name: str) -> list[int]:
        """List a host's processes, as this machine numbers them."""
        found = [self._inits[name]]
        for parent in found:  # which grows meanwhile
            children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
            found += map(int, children)
        return found

    def cut(self, name: str) -> None:
        """Pull a host's network cable."""
        _ip("-n", self._net("sw"), "link", "set", f"p{name}", "down")

    def mend(self, name: str) -> None:
        """Put the cable back."""
        _ip("-n", self._net("sw"), "link", "set", f"p{name}", "up")

    def part(self, *names: str, parted: bool = True) -> None:
        """Let hosts reach all others but each other, or each other again."""
        for name in names:
            how = "on" if parted else "off"
            _ip(
                "-n",
                self._net("sw"),
                "link",
                "set",
                f"p{name}",
                *("type", "bridge_slave"),
                *("isolated", how),
            )

    def shape(self, name: str, rate: str) -> None:
        """Let a host's cable carry so much each way, for example ``200mbit``."""
        for net, device in ((self._net(name), "eth0"), (self._net("sw"), f"p{name}")):
            limit = ("tbf", "rate", rate, "burst", "256kb", "latency", "50ms")
            command = ["tc", "-n", net, "qdisc", "replace", "dev", device, "root", *limit]
            subprocess.run(command, check=True)

    def unshape(self, name: str) -> None:
        """Let a host's cable carry what it can."""
        for net, device in ((self._net(name), "eth0"), (self._net("sw"), f"p{name}")):
            subprocess.run(["tc", "-n", net, "qdisc", "delete", "dev", device, "root"], check=True)

    def command(self, name: str, argv: Sequence[str]) -> list[str]:
        """Give what runs a command on a host."""
        spaces = ("--net", "--uts", "--ipc", "--mount", "--pid")
        pinned = self._pinned(name)
        return [*pinned, "nsenter", f"--target={self._inits[name]}", *spaces, "--", *argv]

    def run(
        self,
        name: str,
        *argv: str,
        env: Mapping[str, str] | None = None,
        timeout_s: float = 240.0,
        check: bool = True,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on a host to its end."""
        answer = subprocess.run(
            self.command(name, ["env", "-C", str(cwd or self.folder), *argv]),
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        assert not check or answer.returncode == 0, f"{argv}: {answer.stdout}\n{answer.stderr}"
        return answer


def available() -> str | None:
    """Say why hosts cannot be pretended here, or None."""
    if os.geteuid() != 0:
        return "only root can make network namespaces"
    for program in ("ip", "tc", "nsenter", "unshare", "taskset", "/usr/sbin/sshd", "ssh-keygen"):
        if shutil.which(program) is None:
            return f"the program {program} is missing"
    return None


def _await(holds: object, what: str) -> None:
    assert callable(holds)
    end = time.monotonic() + _PATIENCE_S
    while not holds():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.02)


def _ip(*words: str, check: bool = True) -> None:
    subprocess.run(["ip", *words], check=check, capture_output=not check)
