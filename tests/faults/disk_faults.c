// Preloaded into a process, it counts the calls that change files below one directory, and at a chosen one
// kills the process, tears the write, or says from then on that the disk is full.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum mode { OFF, KILL, TEAR, FULL };
enum fate { PASS, TORN, REFUSED };

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static char root[4096];
static atomic_int mode = OFF;
static atomic_long chosen;
static atomic_long seen;

void faults_arm(const char* directory, int what, long at) {
    snprintf(root, sizeof root, "%s", directory);
    seen = 0;
    chosen = at;
    mode = what;
}

long faults_seen(void) { return seen; }

static int below(const char* path) { return root[0] && path && strncmp(path, root, strlen(root)) == 0; }

static int file_below(int file) {
    char link[64], path[4096];
    if (!root[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return below(path);
}

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

// What becomes of the call at hand. `grows` tells calls that need room on the disk from those that do not.
static enum fate strike(int grows) {
    const long number = atomic_fetch_add(&seen, 1) + 1;
    if (mode == KILL && number == chosen) die();
    if (mode == TEAR && number == chosen) return TORN;
    return mode == FULL && grows && number >= chosen ? REFUSED : PASS;
}

static int no_room(void) {
    errno = ENOSPC;
    return -1;
}

ssize_t write(int file, const void* data, size_t size) {
    const enum fate fate = file_below(file) ? strike(1) : PASS;
    if (fate == REFUSED) return no_room();
    const ssize_t written = REAL(write)(file, data, fate == TORN ? size / 2 : size);
    if (fate == TORN) die();
    return written;
}

ssize_t pwrite64(int file, const void* data, size_t size, off64_t at) {
    const enum fate fate = file_below(file) ? strike(1) : PASS;
    if (fate == REFUSED) return no_room();
    const ssize_t written = REAL(pwrite64)(file, data, fate == TORN ? size / 2 : size, at);
    if (fate == TORN) die();
    return written;
}

ssize_t pwrite(int file, const void* data, size_t size, off_t at) { return pwrite64(file, data, size, at); }

// The others either happen or do not: torn, the process dies when they have happened.
#define WHOLE(type, ours, grows, call)            \
    const enum fate fate = ours ? strike(grows) : PASS; \
    if (fate == REFUSED) return no_room();        \
    const type result = call;                     \
    if (fate == TORN) die();                      \
    return result

int ftruncate64(int file, off64_t size) { WHOLE(int, file_below(file), 1, REAL(ftruncate64)(file, size)); }
int ftruncate(int file, off_t size) { return ftruncate64(file, size); }
int fsync(int file) { WHOLE(int, file_below(file), 1, REAL(fsync)(file)); }
int fdatasync(int file) { WHOLE(int, file_below(file), 1, REAL(fdatasync)(file)); }
int rename(const char* from, const char* to) { WHOLE(int, below(to), 0, REAL(rename)(from, to)); }
int unlink(const char* path) { WHOLE(int, below(path), 0, REAL(unlink)(path)); }
int mkdir(const char* path, mode_t rights) {
    WHOLE(int, below(path) && access(path, F_OK) != 0, 1, REAL(mkdir)(path, rights));
}

static int open_file(const char* path, int flags, mode_t rights) {
    WHOLE(int, (flags & O_CREAT) && below(path) && access(path, F_OK) != 0, 1, REAL(open64)(path, flags, rights));
}

#define RIGHTS                          \
    mode_t rights = 0;                  \
    if (flags & O_CREAT) {              \
        va_list more;                   \
        va_start(more, flags);          \
        rights = va_arg(more, mode_t);  \
        va_end(more);                   \
    }

int open64(const char* path, int flags, ...) {
    RIGHTS
    return open_file(path, flags, rights);
}

int open(const char* path, int flags, ...) {
    RIGHTS
    return open_file(path, flags, rights);
}
