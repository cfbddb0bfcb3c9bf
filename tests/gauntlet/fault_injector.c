/* Let one modifying call below a directory fail, in this process and all that it starts.
 *
 * Preloaded into everything. A control file, mapped by all, says what to do and counts:
 * see `struct control`, which tests/gauntlet/injector.py writes. What opens to write, writes,
 * flushes, renames, makes, links, removes, cuts or changes attributes counts; reading does not.
 *
 * A call is known by its name, its path and how often both came before: what several processes do
 * side by side has no other order that is the same each time. Random letters in the names of
 * temporary files count as one name.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

struct control {
    int64_t nth;     /* which of the calls that are meant fails; 0: none */
    int64_t stays;   /* whether every call after it fails as well, whatever it is */
    int64_t error;   /* its errno */
    int64_t calls;   /* how many there were in all */
    int64_t meant;   /* how many of them were meant */
    int64_t failed;  /* how many failed */
    char below[1024];
    char call[64];   /* what is meant: its name, and its path below the directory */
    char path[1024];
};

static struct control *control;
static int trace = -1;

#define RANDOM 16 /* letters of chance in a temporary file's name */

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAULT_CONTROL");
    if (!path) return;
    int (*open_)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    int file = open_(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED) control = mapped;
}

/* Write a call down where somebody asked for it. */
static void note(const char *call, const char *path) {
    const char *name = getenv("FAULT_TRACE");
    if (!name) return;
    if (trace < 0) {
        int (*open_)(const char *, int, ...) =
            (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
        trace = open_(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    }
    ssize_t (*write_)(int, const void *, size_t) =
        (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    char text[PATH_MAX + 100];
    int length = snprintf(text, sizeof text, "%s %s\n", call, path);
    if (trace >= 0 && write_(trace, text, (size_t)length) < 0) trace = -1;
}

/* Copy a path; where it ends in .HEX.new, a temporary file's name, leave the random letters out. */
static void shorten(char *into, const char *path) {
    size_t length = strlen(path);
    strcpy(into, path);
    if (length < RANDOM + 5 || strcmp(path + length - 4, ".new")) return;
    char *letters = into + length - 4 - RANDOM;
    if (letters[-1] == '.' && strspn(letters, "0123456789abcdef") == RANDOM)
        strcpy(letters, "HEX.new");
}

/* Count a call on an absolute path; tell whether it is one that fails. */
static int fails(const char *call, const char *path) {
    size_t length = strlen(control->below);
    if (!length || strncmp(path, control->below, length)) return 0;
    if (path[length] && path[length] != '/') return 0;
    char name[PATH_MAX + 1];
    if (strlen(path + length) > PATH_MAX) return 0;
    shorten(name, path + length);
    __atomic_add_fetch(&control->calls, 1, __ATOMIC_SEQ_CST);
    note(call, name);
    if (!control->nth) return 0;
    int is_it = 0;
    if (!strcmp(call, control->call) && !strcmp(name, control->path))
        is_it = __atomic_add_fetch(&control->meant, 1, __ATOMIC_SEQ_CST) == control->nth;
    if (!is_it && !(control->stays && control->failed)) return 0;
    __atomic_add_fetch(&control->failed, 1, __ATOMIC_SEQ_CST);
    errno = (int)control->error;
    return 1;
}

static int fails_file(const char *call, int file) {
    if (!control || !control->below[0]) return 0;
    char link[64], path[PATH_MAX];
    int saved = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    errno = saved;
    if (length <= 0) return 0;
    path[length] = 0;
    return fails(call, path);
}

static int fails_at(const char *call, int folder, const char *name) {
    if (!control || !control->below[0] || !name) return 0;
    if (!name[0]) return fails_file(call, folder); /* AT_EMPTY_PATH */
    if (name[0] == '/') return fails(call, name);
    char path[2 * PATH_MAX], link[64], base[PATH_MAX];
    int saved = errno;
    if (folder == AT_FDCWD) {
        if (!getcwd(base, sizeof base)) return 0;
    } else {
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t length = readlink(link, base, sizeof base - 1);
        if (length <= 0) return 0;
        base[length] = 0;
    }
    errno = saved;
    while (!strncmp(name, "./", 2)) name += 2; /* the same file has one path */
    snprintf(path, sizeof path, "%s/%s", base, name);
    return fails(call, path);
}

static int writes(int flags) {
    return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC));
}

#define MODE(flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { \
        va_list more; \
        va_start(more, flags); \
        mode = va_arg(more, mode_t); \
        va_end(more); \
    }

int open(const char *path, int flags, ...) {
    MODE(flags)
    REAL(open);
    if (writes(flags) && fails_at("open", AT_FDCWD, path)) return -1;
    return real(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    MODE(flags)
    REAL(open64);
    if (writes(flags) && fails_at("open", AT_FDCWD, path)) return -1;
    return real(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
    MODE(flags)
    REAL(openat);
    if (writes(flags) && fails_at("openat", folder, path)) return -1;
    return real(folder, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...) {
    MODE(flags)
    REAL(openat64);
    if (writes(flags) && fails_at("openat", folder, path)) return -1;
    return real(folder, path, flags, mode);
}

FILE *fopen64(const char *path, const char *how) {
    REAL(fopen64);
    if (how[0] != 'r' && fails_at("open", AT_FDCWD, path)) return NULL;
    return real(path, how);
}

ssize_t write(int file, const void *data, size_t length) {
    REAL(write);
    return fails_file("write", file) ? -1 : real(file, data, length);
}

ssize_t pwrite64(int file, const void *data, size_t length, off64_t at) {
    REAL(pwrite64);
    return fails_file("pwrite", file) ? -1 : real(file, data, length, at);
}

ssize_t pwrite(int file, const void *data, size_t length, off_t at) {
    REAL(pwrite);
    return fails_file("pwrite", file) ? -1 : real(file, data, length, at);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    REAL(writev);
    return fails_file("writev", file) ? -1 : real(file, parts, count);
}

ssize_t sendfile64(int out, int in, off64_t *from, size_t length);
ssize_t sendfile64(int out, int in, off64_t *from, size_t length) {
    REAL(sendfile64);
    return fails_file("sendfile", out) ? -1 : real(out, in, from, length);
}

ssize_t sendfile(int out, int in, off_t *from, size_t length);
ssize_t sendfile(int out, int in, off_t *from, size_t length) {
    REAL(sendfile);
    return fails_file("sendfile", out) ? -1 : real(out, in, from, length);
}

#define OF_FILE(name) \
    int name(int file) { \
        REAL(name); \
        return fails_file(#name, file) ? -1 : real(file); \
    }
OF_FILE(fsync)
OF_FILE(fdatasync)

int posix_fallocate64(int file, off64_t from, off64_t length) {
    REAL(posix_fallocate64);
    return fails_file("posix_fallocate", file) ? errno : real(file, from, length);
}

ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *to, size_t size, unsigned flags) {
    REAL(copy_file_range);
    return fails_file("copy_file_range", out) ? -1 : real(in, from, out, to, size, flags);
}

int truncate64(const char *path, off64_t length) {
    REAL(truncate64);
    return fails_at("truncate", AT_FDCWD, path) ? -1 : real(path, length);
}

int ftruncate64(int file, off64_t length) {
    REAL(ftruncate64);
    return fails_file("ftruncate", file) ? -1 : real(file, length);
}

int rename(const char *from, const char *to) {
    REAL(rename);
    return fails_at("rename", AT_FDCWD, to) ? -1 : real(from, to);
}

int renameat2(int there, const char *from, int folder, const char *to, unsigned flags) {
    REAL(renameat2);
    return fails_at("renameat2", folder, to) ? -1 : real(there, from, folder, to, flags);
}

int renameat(int there, const char *from, int folder, const char *to) {
    REAL(renameat);
    return fails_at("renameat", folder, to) ? -1 : real(there, from, folder, to);
}

int mkdir(const char *path, mode_t mode) {
    REAL(mkdir);
    return fails_at("mkdir", AT_FDCWD, path) ? -1 : real(path, mode);
}

int mkdirat(int folder, const char *path, mode_t mode) {
    REAL(mkdirat);
    return fails_at("mkdirat", folder, path) ? -1 : real(folder, path, mode);
}

int unlink(const char *path) {
    REAL(unlink);
    return fails_at("unlink", AT_FDCWD, path) ? -1 : real(path);
}

int unlinkat(int folder, const char *path, int flags) {
    REAL(unlinkat);
    return fails_at("unlinkat", folder, path) ? -1 : real(folder, path, flags);
}

int rmdir(const char *path) {
    REAL(rmdir);
    return fails_at("rmdir", AT_FDCWD, path) ? -1 : real(path);
}

int link(const char *from, const char *to) {
    REAL(link);
    return fails_at("link", AT_FDCWD, to) ? -1 : real(from, to);
}

int linkat(int there, const char *from, int folder, const char *to, int flags) {
    REAL(linkat);
    return fails_at("linkat", folder, to) ? -1 : real(there, from, folder, to, flags);
}

int symlink(const char *from, const char *to) {
    REAL(symlink);
    return fails_at("symlink", AT_FDCWD, to) ? -1 : real(from, to);
}

int symlinkat(const char *from, int folder, const char *to) {
    REAL(symlinkat);
    return fails_at("symlinkat", folder, to) ? -1 : real(from, folder, to);
}

int mkfifo(const char *path, mode_t mode) {
    REAL(mkfifo);
    return fails_at("mkfifo", AT_FDCWD, path) ? -1 : real(path, mode);
}

int mknod(const char *path, mode_t mode, dev_t device) {
    REAL(mknod);
    return fails_at("mknod", AT_FDCWD, path) ? -1 : real(path, mode, device);
}

int chmod(const char *path, mode_t mode) {
    REAL(chmod);
    return fails_at("chmod", AT_FDCWD, path) ? -1 : real(path, mode);
}

int fchmod(int file, mode_t mode) {
    REAL(fchmod);
    return fails_file("fchmod", file) ? -1 : real(file, mode);
}

int fchmodat(int folder, const char *path, mode_t mode, int flags) {
    REAL(fchmodat);
    return fails_at("fchmodat", folder, path) ? -1 : real(folder, path, mode, flags);
}

int utimensat(int folder, const char *path, const struct timespec times[2], int flags) {
    REAL(utimensat);
    return fails_at("utimensat", folder, path) ? -1 : real(folder, path, times, flags);
}

int futimens(int file, const struct timespec times[2]) {
    REAL(futimens);
    return fails_file("futimens", file) ? -1 : real(file, times);
}

int setxattr(const char *path, const char *name, const void *value, size_t size, int flags) {
    REAL(setxattr);
    return fails_at("setxattr", AT_FDCWD, path) ? -1 : real(path, name, value, size, flags);
}
