/* This file is a stand-in for libnvidia-ml with the ABI of NVIDIA's public nvml.h. It says what it
 * is in every name it gives: "STUB (not a GPU)". Its environment decides how it behaves:
 *
 *   STUB_GPUS=2          how many devices
 *   STUB_LOST=1@2        device 1 is lost once it was asked twice how busy it is
 *   STUB_NARROW=1        PCIe bytes are counted in 32 bits, 1 KiB below their end when first read
 *   STUB_OLD=1           energy, power fields and NVLink are not supported
 *   STUB_SLOW_MS=50      every reading of a clock takes so long
 *   STUB_PIDS=17,18      processes with a context on device 0
 *   STUB_SLOWED=32       clock event reasons of device 0
 *
 * Compiled with -DWITHOUT_FIELDS, it lacks nvmlDeviceGetFieldValues and the newer names.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int nvmlReturn_t;
enum { OK = 0, INVALID = 2, UNSUPPORTED = 3, TOO_SMALL = 7, LOST = 15 };
typedef struct device { unsigned index; } *nvmlDevice_t;
typedef struct { unsigned gpu, memory; } nvmlUtilization_t;
typedef struct { unsigned long long total, free, used; } nvmlMemory_t;
typedef struct {
    unsigned pid;
    unsigned long long used;
    unsigned gpu, compute;
} nvmlProcessInfo_t;
typedef union {
    double d;
    unsigned ui;
    unsigned long ul;
    unsigned long long ull;
    long long sll;
} nvmlValue_t;
typedef struct {
    unsigned field, scope;
    long long timestamp, latency;
    unsigned type;
    nvmlReturn_t result;
    nvmlValue_t value;
} nvmlFieldValue_t;

static struct device devices[8];
static unsigned asked[8];
static double began;

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static long setting(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

static int lost(nvmlDevice_t device) {
    unsigned index, after;
    const char *text = getenv("STUB_LOST");
    return text && sscanf(text, "%u@%u", &index, &after) == 2 && index == device->index &&
           asked[index] > after;
}

#define CHECK(device) \
    if (lost(device)) return LOST

nvmlReturn_t nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    if (!began) began = now(CLOCK_MONOTONIC);
    for (unsigned i = 0; i < 8; i++) devices[i].index = i;
    return OK;
}

nvmlReturn_t nvmlShutdown(void) { return OK; }

const char *nvmlErrorString(nvmlReturn_t result) {
    return result == LOST ? "GPU is lost" : "stub error";
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count) {
    *count = (unsigned)setting("STUB_GPUS", 2);
    return OK;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device) {
    if (index >= 8) return INVALID;
    *device = &devices[index];
    return OK;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length) {
    snprintf(uuid, length, "GPU-%08x-0000-0000-0000-000000000000", 0xabc00000u + device->index);
    return OK;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length) {
    (void)device;
    snprintf(name, length, "STUB (not a GPU)");
    return OK;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *told) {
    asked[device->index]++;
    CHECK(device);
    told->gpu = 10 * device->index + 5;
    told->memory = device->index;
    return OK;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *told) {
    CHECK(device);
    told->total = 80ull << 30;
    told->used = (unsigned long long)(device->index + 1) << 30;
    told->free = told->total - told->used;
    return OK;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned type, unsigned *mhz) {
    CHECK(device);
    long pause_ms = setting("STUB_SLOW_MS", 0);
    struct timespec pause = {pause_ms / 1000, (pause_ms % 1000) * 1000000};
    if (pause_ms) nanosleep(&pause, NULL);
    *mhz = type == 1 ? 1410 : 1593;
    return OK;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned sensor, unsigned *degrees) {
    (void)sensor;
    CHECK(device);
    *degrees = 40 + device->index;
    return OK;
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *milliwatts) {
    CHECK(device);
    *milliwatts = 100000 * (device->index + 1);
    return OK;
}

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device,
                                                       unsigned long long *told) {
    CHECK(device);
    *told = device->index == 0 ? (unsigned long long)setting("STUB_SLOWED", 0) : 0;
    return OK;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned kind, unsigned counter,
                                         unsigned long long *count) {
    (void)counter;
    CHECK(device);
    if (setting("STUB_OLD", 0)) return UNSUPPORTED;
    *count = device->index == 0 && kind == 0 ? (unsigned long long)setting("STUB_CORRECTED", 0) : 0;
    return OK;
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned *lanes) {
    CHECK(device);
    *lanes = device->index == 0 ? (unsigned)setting("STUB_LANES", 16) : 16;
    return OK;
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned *generation) {
    CHECK(device);
    *generation = 4;
    return OK;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                     nvmlProcessInfo_t *told) {
    CHECK(device);
    unsigned found = 0, room = *count;
    const char *text = device->index == 0 ? getenv("STUB_PIDS") : NULL;
    while (text && *text) {
        if (told && found < room) {
            memset(&told[found], 0, sizeof *told);
            told[found].pid = (unsigned)atol(text);
        }
        found++;
        text = strchr(text, ',');
        if (text) text++;
    }
    *count = found;
    return found > room ? TOO_SMALL : OK;
}

#ifndef WITHOUT_FIELDS
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long *told) {
    return nvmlDeviceGetCurrentClocksThrottleReasons(device, told);
}

/* 100 W per device and its number; 1 GB/s out and 2 GB/s in over PCIe; 1 GiB/s over NVLink. */
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values) {
    CHECK(device);
    int old = (int)setting("STUB_OLD", 0), narrow = (int)setting("STUB_NARROW", 0);
    int nvlink = (int)setting("STUB_NVLINK", 4);
    double power = 100.0 * (device->index + 1), t = now(CLOCK_MONOTONIC) - began;
    static double first_read[8];
    double *first = &first_read[device->index];
    if (asked[device->index] <= 2) *first = t; /* once when it is opened, then when it is read */
    for (int i = 0; i < count; i++) {
        nvmlFieldValue_t *one = &values[i];
        one->timestamp = (long long)(now(CLOCK_REALTIME) * 1e6);
        one->latency = 1;
        one->result = OK;
        one->type = 3;
        unsigned long long bytes;
        switch (one->field) {
        case 83:
            one->value.ull = (unsigned long long)(power * t * 1e3);
            break;
        case 185:
        case 186:
            one->type = 1;
            one->value.ui = (unsigned)(power * 1e3);
            break;
        case 197:
        case 198:
            bytes = (unsigned long long)((one->field - 196) * 1e9 * (t - *first));
            if (narrow) {
                one->type = 1;
                one->value.ui = (unsigned)(bytes + 0xfffffc00u);
            } else {
                one->value.ull = bytes;
            }
            continue;
        case 138:
        case 139:
            one->value.ull = (unsigned long long)(1048576.0 * t);
            if (one->scope != 0xffffffffu) one->result = INVALID;
            if (nvlink != 4) one->result = UNSUPPORTED;
            break;
        case 202:
        case 204:
            one->value.ull = (unsigned long long)((one->field - 201) * 1e6 * t);
            if (one->scope >= (unsigned)setting("STUB_LINKS", 18)) one->result = INVALID;
            if (nvlink != 5) one->result = UNSUPPORTED;
            break;
        default:
            one->result = UNSUPPORTED;
        }
        if (old) one->result = UNSUPPORTED;
    }
    return OK;
}
#endif
