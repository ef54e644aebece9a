/* Blocks of the disk, of 4,096 bytes, and files on them. A range of blocks is this process's own
   (exos_blocks of <exos/service.h>); what it held before, it holds still. */
#ifndef EXOS_DISK_H
#define EXOS_DISK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Blocks of a range. ENODEV: there is none of this number. */
long exos_disk_blocks(int range);
/* Reads or writes blocks, one behind the other, to or from pages; the device does it by itself,
   sixteen at a time. All are done when this returns, and there for good after a flush. EINVAL: behind
   the range's end, or the address is no page's. EIO: the device says so. */
int exos_disk_read(int range, uint64_t first, void *to, size_t blocks);
int exos_disk_write(int range, uint64_t first, const void *from, size_t blocks);
int exos_disk_flush(int range);

/* Whether a frame may be given up now. */
typedef int exos_cache_may(void *which, uint32_t frame);

/* Which frame of a cache is given up for something new: functions of the program, each called with
   `of`. One that is NULL is not called; a choice that may not be is made by the library. */
struct exos_cache_policy {
	/* There are so many frames, all of them empty. */
	void (*begin)(void *of, uint32_t frames);
	/* A frame has something now; `what` is the same number whenever the same block comes. */
	void (*filled)(void *of, uint32_t frame, uint64_t what);
	void (*used)(void *of, uint32_t frame);
	void (*emptied)(void *of, uint32_t frame);
	/* A frame for which `may(which, frame)` is not 0; -1: none. */
	int64_t (*choose)(void *of, exos_cache_may *may, void *which);
	void *of;
};

/* When blocks become a new, empty file system. */
enum exos_make { EXOS_MAKE_NO, EXOS_MAKE_MISSING, EXOS_MAKE_ANEW };

struct exos_disk_files {
	const char *name;                       /* the mount point; `/` has the disk's own blocks */
	uint64_t blocks;                        /* elsewhere: so many for this process alone */
	uint32_t frames;                        /* of the cache; 0: as many as seem right */
	uint32_t make;                          /* an exos_make */
	const struct exos_cache_policy *policy; /* NULL: the library's, 2Q */
};

/* Serves files on blocks of the disk until somebody unmounts them: 0. -1, if that cannot be. ENODEV: there is no disk.
   EINVAL: no file system is on it. EIO: it is damaged. EBUSY: this process serves some already. */
int exos_files_on_disk(const struct exos_disk_files *how);

#ifdef __cplusplus
}
#endif
#endif
