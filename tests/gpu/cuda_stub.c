/* A stand-in for the few functions of libcuda.so.1 by which a GPU day asks the driver to wait: a
 * device that is always idle. With STUB_CONTEXT=0 nobody computes in its primary context.
 */
#include <stdlib.h>

typedef int CUresult;
typedef void *CUcontext;

static int context;

CUresult cuInit(unsigned flags) {
    (void)flags;
    return 0;
}

CUresult cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    const char *text = getenv("STUB_CONTEXT");
    (void)device;
    *flags = 0;
    *active = text ? atoi(text) : 1;
    return 0;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *made, int device) {
    (void)device;
    *made = &context;
    return 0;
}

CUresult cuCtxPushCurrent_v2(CUcontext pushed) { return pushed == &context ? 0 : 201; }

CUresult cuCtxSynchronize(void) { return 0; }

CUresult cuCtxPopCurrent_v2(CUcontext *popped) {
    *popped = &context;
    return 0;
}
