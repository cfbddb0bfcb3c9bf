from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.environments.identity.recorded_environment import NOT_RECORDED, redacted
from harness.machine import cgroup, gpus
from harness.machine.machine import Machine, read_machine
from harness.run.provenance import git_state, provenance, software
from harness.worker.redaction.places import HIDDEN
from harness.worker.redaction.redact import redact

MEMINFO = "MemTotal: 1000 kB\nMemAvailable: 400 kB\nSwapTotal: 8 kB\nSwapFree: 6 kB\n"
CPUINFO = """processor\t: 0
model name\t: Intel(R) Xeon Phi(TM) CPU 7250 @ 1.40GHz
flags\t\t: fpu sse4_2 avx avx2 avx512f avx512er hypervisor
"""


def lay(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """Two cores of two threads; this process may use the first core's threads and one more."""
    files = {
        "proc/cpuinfo": CPUINFO,
        "proc/meminfo": MEMINFO,
        "proc/stat": "cpu  50 0 30 10 0 0 0 10 0 0\n",
        "proc/loadavg": "1.50 0.75 0.25 2/300 999\n",
        "proc/pressure/cpu": "some avg10=12.50 avg60=1.00 avg300=0.00 total=9\n",
        "proc/sys/kernel/numa_balancing": "1\n",
        "sys/devices/system/cpu/online": "0-3\n",
        "sys/devices/system/cpu/smt/active": "1\n",
        "sys/devices/system/cpu/intel_pstate/no_turbo": "0\n",
        "sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet\n",
        "sys/devices/system/clocksource/clocksource0/available_clocksource": "hpet acpi_pm\n",
        "sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n",
        "sys/devices/system/node/online": "0-1\n",
        "sys/devices/system/node/node0/cpulist": "0-3\n",
        "sys/devices/system/node/node0/meminfo": "Node 0 MemTotal: 600 kB\n",
        "sys/devices/system/node/node1/cpulist": "\n",
        "sys/devices/system/node/node1/meminfo": "Node 1 MemTotal: 400 kB\n",
        "sys/class/dmi/id/sys_vendor": "QEMU\n",
    }
    for cpu in range(4):
        folder = f"sys/devices/system/cpu/cpu{cpu}"
        files[f"{folder}/topology/thread_siblings_list"] = "0-1" if cpu < 2 else "2,3"
        files[f"{folder}/topology/physical_package_id"] = "0"
        files[f"{folder}/cpufreq/scaling_governor"] = "powersave" if cpu < 3 else "performance"
    return lay(tmp_path, files)


def test_a_machine_is_read_as_it_says_it_is(node: Path) -> None:
    seen = read_machine(node, allowed={0, 1, 2}, environ={})
    assert seen.cpu_model == "Intel(R) Xeon Phi(TM) CPU 7250 @ 1.40GHz"
    assert seen.capabilities == ("avx", "avx2", "avx512er", "avx512f", "sse4_2")
    assert (seen.sockets, seen.cores, seen.threads_per_core, seen.cpus_online) == (1, 2, 2, 4)
    assert (seen.cores_allowed, seen.shared_cpus) == (2, (2,))
    assert (seen.memory_bytes, seen.memory_available_bytes) == (1_024_000, 409_600)
    assert seen.swap_used_bytes == 2048
    assert [len(one.cpus) for one in seen.numa] == [4, 0]
    assert (seen.governors, seen.turbo, seen.smt) == (("powersave",), True, True)
    assert (seen.transparent_huge_pages, seen.clock_source) == ("always", "hpet")
    assert (seen.hypervisor, seen.steal_share) == ("QEMU", 0.1)
    assert (seen.load, seen.cpu_pressure) == ((1.5, 0.75, 0.25), 0.125)
    assert seen.numa_balancing is True


def test_what_a_machine_does_not_show_is_unknown(tmp_path: Path) -> None:
    seen = read_machine(tmp_path, allowed={0}, environ={})
    unknown = ("cpu_model", "sockets", "cores", "memory_bytes", "cpu_quota", "turbo", "smt", "load")
    assert [getattr(seen, name) for name in unknown] == [None] * len(unknown)
    assert (seen.shared_cpus, seen.steal_share, seen.transparent_huge_pages) == (None, None, None)


def test_a_container_is_recognised(tmp_path: Path) -> None:
    assert read_machine(tmp_path, allowed={0}, environ={"container": "lxc"}).container == "lxc"
    apptainer = {"APPTAINER_CONTAINER": "/image.sif"}
    assert read_machine(tmp_path, allowed={0}, environ=apptainer).container == "apptainer"
    lay(tmp_path, {"proc/self/cgroup": "0::/kubepods/pod1\n"})
    assert read_machine(tmp_path, allowed={0}, environ={}).container == "kubernetes"


def test_the_tightest_limit_above_a_process_counts(tmp_path: Path) -> None:
    lay(
        tmp_path,
        {
            "proc/self/cgroup": "0::/job/step\n",
            "proc/self/mountinfo": "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            "sys/fs/cgroup/job/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/job/memory.max": "4096\n",
            "sys/fs/cgroup/job/step/cpu.max": "max 100000\n",
            "sys/fs/cgroup/job/step/memory.max": "max\n",
            "sys/fs/cgroup/job/step/cpu.stat": "nr_throttled 7\nthrottled_usec 2500000\n",
        },
    )
    assert cgroup.limits(tmp_path) == cgroup.Limits(1.5, 4096, 7, 2.5)


def test_version_1_groups_inside_a_container_are_found(tmp_path: Path) -> None:
    inside = "/docker/abc"
    lay(
        tmp_path,
        {
            "proc/self/cgroup": f"4:memory:{inside}\n2:cpu,cpuacct:{inside}\n0::/\n",
            "proc/self/mountinfo": (
                f"31 1 0:1 {inside} /sys/fs/cgroup/cpu,cpuacct ro - cgroup c rw,cpu,cpuacct\n"
                f"32 1 0:2 {inside} /sys/fs/cgroup/memory ro - cgroup c rw,memory\n"
            ),
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "25000\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.stat": "nr_throttled 0\nthrottled_time 0\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "1048576\n",
        },
    )
    assert cgroup.limits(tmp_path) == cgroup.Limits(0.25, 1 << 20, 0, 0.0)


GROUPS_IN_USE = {
    "version 2": {
        "proc/self/cgroup": "0::/job/step\n",
        "proc/self/mountinfo": "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        "sys/fs/cgroup/job/memory.max": "10000\n",
        "sys/fs/cgroup/job/memory.current": "7000\n",
        "sys/fs/cgroup/job/memory.stat": "anon 4000\nactive_file 500\ninactive_file 1500\n",
        "sys/fs/cgroup/job/step/memory.max": "9000\n",
        "sys/fs/cgroup/job/step/memory.current": "1000\n",
        "sys/fs/cgroup/job/step/memory.stat": "anon 1000\nactive_file 0\ninactive_file 0\n",
    },
    "version 1": {
        "proc/self/cgroup": "4:memory:/job\n",
        "proc/self/mountinfo": "32 1 0:2 / /sys/fs/cgroup/memory rw - cgroup c rw,memory\n",
        "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "10000\n",
        "sys/fs/cgroup/memory/job/memory.usage_in_bytes": "7000\n",
        "sys/fs/cgroup/memory/job/memory.stat": (
            "inactive_file 0\ntotal_active_file 500\ntotal_inactive_file 1500\n"
        ),
    },
}


@pytest.mark.parametrize("files", GROUPS_IN_USE.values(), ids=GROUPS_IN_USE)
def test_what_others_of_a_group_hold_is_not_free_but_cached_files_are(
    tmp_path: Path, files: dict[str, str]
) -> None:
    lay(tmp_path, files)
    assert cgroup.free_memory_bytes(tmp_path) == 10000 - (7000 - 500 - 1500)


def test_a_group_that_does_not_say_what_it_uses_allows_its_limit(tmp_path: Path) -> None:
    files = GROUPS_IN_USE["version 2"]
    lay(tmp_path, {name: text for name, text in files.items() if "memory.current" not in name})
    assert cgroup.free_memory_bytes(tmp_path) == 9000
    assert cgroup.free_memory_bytes(tmp_path / "nothing") is None


def test_no_limit_is_unknown_and_not_a_large_number(tmp_path: Path) -> None:
    lay(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/\n1:cpu:/\n",
            "proc/self/mountinfo": (
                "31 1 0:1 / /sys/fs/cgroup/cpu rw - cgroup c rw,cpu\n"
                "32 1 0:2 / /sys/fs/cgroup/memory rw - cgroup c rw,memory\n"
            ),
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        },
    )
    assert cgroup.limits(tmp_path) == cgroup.Limits()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_TOKEN", "x"),
        ("AWS_SECRET_ACCESS_KEY", "y"),
        ("DB_PASSWORD", "z"),
        ("MYSQL_PWD", "z"),
        ("api_key", "1"),
        ("MYCREDS", "hunter2"),
        ("OMPI_MCA_pw", "hunter2"),
        ("PLAIN", "ghp_0123456789abcdefghijABCDEFGHIJ012345"),
        ("PLAIN", "AKIAIOSFODNN7EXAMPLE"),
        ("PLAIN", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.sig"),
        ("PLAIN", "Bearer abcdef123456"),
        ("PLAIN", "-----BEGIN OPENSSH PRIVATE KEY-----"),
        ("PLAIN", "d41d8cd98f00b204e9800998ecf8427e"),
        ("PLAIN", "wJalrXUtnFEMI7K7MDENGbPxRfiCYEXAMPLEKEY"),
    ],
)
def test_secrets_are_hidden_by_name_and_by_shape(name: str, value: str) -> None:
    assert redact(name, value) == HIDDEN


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PATH", "/usr/local/bin:/usr/bin:/opt/rocm-6.1.0/lib/python3.11/site-packages"),
        ("PWD", "/home/somebody/project"),
        ("OMP_NUM_THREADS", "4"),
        ("LS_COLORS", "rs=0:di=01;34:ln=01;36"),
        ("SLURM_JOB_NODELIST", "minna[03-10]"),
        ("CUDA_VISIBLE_DEVICES", "0,1"),
        ("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false --xla_force_host_platform=8"),
        ("KMP_AFFINITY", "granularity=fine,compact,1,0"),
        ("LANG", "en_GB.UTF-8"),
    ],
)
def test_what_explains_a_result_stays(name: str, value: str) -> None:
    assert redact(name, value) == value


def test_only_the_credentials_of_an_address_are_hidden() -> None:
    proxy = redact("http_proxy", "http://user:hunter2@proxy:3128/path?token=abc&x=1")
    assert proxy == f"http://{HIDDEN}@proxy:3128/path?token={HIDDEN}&x=1"


@pytest.mark.parametrize(
    ("value", "left"),
    [
        ('--key="hunter2" --x=1', f"--key={HIDDEN} --x=1"),
        ("--xla_auth=hunter2", f"--xla_auth={HIDDEN}"),
        ("--api-key hunter2 --x 1", f"--api-key {HIDDEN} --x 1"),
        ("user=me pw: 'hunter 2'", f"user=me pw: {HIDDEN}"),
        ("mycreds=hunter2;x=1", f"mycreds={HIDDEN};x=1"),
    ],
)
def test_a_secret_among_flags_is_hidden_and_the_flags_stay(value: str, left: str) -> None:
    assert redact("XLA_FLAGS", value) == left


def test_only_variables_that_explain_numbers_keep_their_value() -> None:
    telling = {
        "BEAM": "2",
        "HOROVOD_FUSION_THRESHOLD": "0",
        "INTEL_CAFFE_BIN": "/opt/caffe",
        "LD_LIBRARY_PATH": "/opt/lib",
        "OMP_NUM_THREADS": "4",
        "PATH": "/usr/bin",
        "SLURM_JOB_NODELIST": "minna[03-10]",
        "TF_ENABLE_ONEDNN_OPTS": "1",
        "TORCHINDUCTOR_CACHE_DIR": "/tmp/cache",
    }
    others = {
        "BEAM_RUNNER": "Apache's",
        "FAVOURITE": "hunter2",
        "HOME": "/home/somebody",
        "SLURM_EXPORT_ENV": "ALL,FAVOURITE=hunter2",
        "TF_VAR_favourite": "hunter2",
    }
    taken = redacted(telling | others | {"BAKEOFF_TOKEN": "run/cell", "SLURM_JWT": "hunter2"})
    assert {name: taken[name] for name in telling} == telling
    assert {taken[name] for name in others} == {NOT_RECORDED}
    assert taken["BAKEOFF_TOKEN"] == taken["SLURM_JWT"] == HIDDEN


def test_an_environment_is_sorted_and_without_shell_functions() -> None:
    taken = redacted({"OMP_B": "2", "OMP_A": "1", "BASH_FUNC_module%%": "() { :; }"})
    assert list(taken.items()) == [("OMP_A", "1"), ("OMP_B", "2")]


def test_a_long_value_is_cut_and_says_so() -> None:
    assert redact("LONG", "ab " * 1000).endswith("… (3000 characters)")


def test_provenance_is_plain_json_without_secrets(tmp_path: Path, node: Path) -> None:
    machine = read_machine(node, allowed={0}, environ={})
    facts = provenance(
        tmp_path,
        machine=machine,
        environ={"MY_TOKEN": "sesame", "OMP_NUM_THREADS": "2"},
        arguments=["bakeoff", "run", "https://me:sesame@host/x.toml"],
    )
    text = json.dumps(facts)
    assert "sesame" not in text
    assert facts["environment"]["OMP_NUM_THREADS"] == "2"
    assert facts["source"] is None
    assert facts["software"]["libraries"]["click"]


def test_taking_it_costs_less_than_50_ms_of_cpu(tmp_path: Path) -> None:
    provenance(tmp_path)
    spent = []
    for _ in range(3):
        started = time.process_time()
        provenance(tmp_path)
        spent.append(time.process_time() - started)
    assert min(spent) < 0.050


def test_the_state_of_a_repository_is_named(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c"]
        return subprocess.run(
            [*command, *arguments], check=True, capture_output=True, text=True
        ).stdout.strip()

    git("init", "-q", "-b", "main")
    assert git_state(tmp_path) == {"commit": None, "branch": "main", "changed": 0, "untracked": 0}
    (tmp_path / "a").write_text("1")
    git("add", "a")
    git("commit", "-q", "-m", "a", "--no-gpg-sign")
    (tmp_path / "a").write_text("2")
    (tmp_path / "b").write_text("2")
    state = git_state(tmp_path)
    assert state == {
        "commit": git("rev-parse", "HEAD"),
        "branch": "main",
        "changed": 1,
        "untracked": 1,
    }


def test_a_folder_outside_any_repository_has_no_state(tmp_path: Path) -> None:
    assert git_state(tmp_path) is None
    assert git_state(tmp_path / "absent") is None


def test_the_software_names_every_library_the_harness_requires() -> None:
    libraries = software()["libraries"]
    assert {"pydantic", "duckdb", "nvidia-ml-py"} <= libraries.keys()
    assert "pytest" not in libraries
    assert all(libraries.values())


class FakeNvml:
    """As much of the driver's library as one reading asks for; the second GPU knows no ECC."""

    class NVMLError(Exception):
        pass

    def __getattr__(self, name: str) -> object:
        answers: dict[str, object] = {
            "nvmlDeviceGetCount": 2,
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=80, used=3),
            "nvmlDeviceGetComputeRunningProcesses": ["somebody"],
            "nvmlDeviceGetPersistenceMode": 1,
            "nvmlDeviceGetEnforcedPowerLimit": 700_000,
            "nvmlSystemGetDriverVersion": "580.1",
            "nvmlDeviceGetName": "GPU",
            "nvmlDeviceGetNumGpuCores": 9216,
            "nvmlDeviceGetMaxClockInfo": 1695,
            "nvmlDeviceGetCudaComputeCapability": (8, 6),
            "NVML_CLOCK_SM": 1,
            "nvmlInit": None,
            "nvmlShutdown": None,
        }
        return lambda *_: answers[name]

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> str:  # noqa: N802
        return f"GPU-{handle}"

    def nvmlDeviceGetEccMode(self, handle: int) -> tuple[int, int]:  # noqa: N802
        if handle == 1:
            raise self.NVMLError
        return (1, 1)


def test_a_gpu_is_known_by_its_uuid_and_says_what_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    first, second = gpus.read_gpus() or ()
    assert (first.uuid, first.ecc, second.ecc) == ("GPU-0", True, None)
    assert (first.processes, first.used_bytes, first.power_limit_w) == (1, 3, 700.0)
    assert (first.cores, first.highest_clock_hz) == (9216, 1.695e9)
    assert first.compute_capability == (8, 6)


def test_the_real_machine_gives_a_reading() -> None:
    seen = read_machine()
    assert isinstance(seen, Machine)
    assert 0 < seen.usable_cpus <= len(seen.cpus_allowed)
    assert seen.usable_memory_bytes
