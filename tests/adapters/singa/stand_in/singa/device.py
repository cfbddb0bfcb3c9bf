"""Devices: a CPU that is always idle, and no GPU."""


class Device:
    def id(self):
        return -1

    def Sync(self):  # noqa: N802 - SINGA's name
        pass


def create_cpu_device():
    return Device()


def create_cuda_gpu_on(number):
    raise RuntimeError(f"this build has no CUDA, and no GPU {number}")
