/* mmap and its kin, on the heap: memory of its own that begins as zero, or as the bytes of a file.
 * What a mapping cannot be here is refused: executable, shared with a file that is written, at a
 * place of the caller's choice. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/lock.h>
#include <sys/mman.h>
#include <unistd.h>

#include "call.h"

/* A mapping, until all of its pages are unmapped. Parts of it stay where they are until then: the
 * heap takes back whole blocks. */
struct mapping {
    struct mapping *next;
    uintptr_t start, end;
    size_t left;
};

extern struct __lock __lock___mappings;
static struct mapping *mappings;

static void *failed(int error)
{
    errno = error;
    return MAP_FAILED;
}

static size_t pages(size_t n) { return (n + 4095) & ~(size_t)4095; }

/* Fills the memory with the file's bytes from `at`; what is behind its end stays zero. */
static int fill(char *to, size_t n, int fd, off_t at)
{
    while (n) {
        ssize_t got = pread(fd, to, n, at);
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        to += got;
        at += got;
        n -= (size_t)got;
    }
    return 0;
}

void *mmap(void *wish, size_t n, int protection, int flags, int fd, off_t at)
{
    if (!n || n > SIZE_MAX / 2 || (at & 4095))
        return failed(EINVAL);
    if (protection & PROT_EXEC)
        return failed(EACCES);
    if (flags & MAP_FIXED)
        return failed(ENOMEM);
    int anonymous = flags & MAP_ANONYMOUS;
    if (!anonymous && (flags & MAP_SHARED) && (protection & PROT_WRITE))
        return failed(ENODEV);
    size_t size = pages(n);
    struct mapping *mapping = malloc(sizeof *mapping);
    char *memory = mapping ? memalign(4096, size) : 0;
    if (!memory) {
        free(mapping);
        return failed(ENOMEM);
    }
    memset(memory, 0, size);
    if (!anonymous && fill(memory, n, fd, at)) {
        int error = errno;
        free(memory);
        free(mapping);
        return failed(error == ESPIPE ? ENODEV : error);
    }
    *mapping = (struct mapping){ 0, (uintptr_t)memory, (uintptr_t)memory + size, size };
    __retarget_lock_acquire(&__lock___mappings);
    mapping->next = mappings;
    mappings = mapping;
    __retarget_lock_release(&__lock___mappings);
    return memory;
}

int munmap(void *address, size_t n)
{
    uintptr_t start = (uintptr_t)address;
    if ((start & 4095) || !n || n > SIZE_MAX / 2) {
        errno = EINVAL;
        return -1;
    }
    uintptr_t end = start + pages(n);
    struct mapping *empty = 0;
    __retarget_lock_acquire(&__lock___mappings);
    for (struct mapping **at = &mappings; *at;) {
        struct mapping *mapping = *at;
        uintptr_t from = start > mapping->start ? start : mapping->start, to = end < mapping->end ? end : mapping->end;
        size_t part = from < to ? to - from : 0;
        mapping->left -= part < mapping->left ? part : mapping->left;
        if (!mapping->left) {
            *at = mapping->next;
            mapping->next = empty;
            empty = mapping;
        } else {
            at = &mapping->next;
        }
    }
    __retarget_lock_release(&__lock___mappings);
    while (empty) {
        struct mapping *next = empty->next;
        free((void *)empty->start);
        free(empty);
        empty = next;
    }
    return 0;
}

/* The heap can be read and written, all of it, always. */
int mprotect(void *address, size_t n, int protection)
{
    if (protection == (PROT_READ | PROT_WRITE))
        return 0;
    errno = protection & PROT_EXEC ? EACCES : ENOSYS;
    return -1;
}

/* What was mapped of a file is a copy, and never newer than the file. */
int msync(void *address, size_t n, int flags) { return 0; }
int madvise(void *address, size_t n, int advice)
{
    if (advice == MADV_DONTNEED) {
        errno = ENOSYS;
        return -1;
    }
    return 0;
}
int posix_madvise(void *address, size_t n, int advice) { return 0; }
