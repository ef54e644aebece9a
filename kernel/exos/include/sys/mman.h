/* Memory by ranges, with the numbers of Linux. */
#ifndef EXOS_SYS_MMAN_H
#define EXOS_SYS_MMAN_H

#include <sys/types.h>

#define PROT_NONE 0
#define PROT_READ 1
#define PROT_WRITE 2
#define PROT_EXEC 4

#define MAP_SHARED 0x01
#define MAP_PRIVATE 0x02
#define MAP_FIXED 0x10
#define MAP_ANONYMOUS 0x20
#define MAP_ANON MAP_ANONYMOUS
#define MAP_NORESERVE 0x4000
#define MAP_POPULATE 0x8000
#define MAP_FAILED ((void *)-1)

#ifdef __cplusplus
extern "C" {
#endif

/* Shared memory is shared with processes that are forked from this one. A file of the archive comes
   page by page; behind its end nothing does (SIGSEGV). ENOMEM: there is no room, or 32 files are
   mapped; EINVAL: not whole pages, or a file neither private nor shared; EBADF: no descriptor;
   ENODEV: not a file's; EACCES: a shared file, to be written. */
void *mmap(void *address, size_t length, int protection, int flags, int descriptor, off_t offset);
int munmap(void *address, size_t length);
/* ENOMEM: something in the range is not mapped; what is before it is changed. EACCES: the page is
   another's, who does not allow it, or a shared file's. */
int mprotect(void *address, size_t length, int protection);

#ifdef __cplusplus
}
#endif
#endif
