/* Services that processes offer to all others under a name, in a page that everybody reads. A name that
   begins with `/` is a mount point, whose process serves files; `/` has the disk. */
#ifndef EXOS_SERVICE_H
#define EXOS_SERVICE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a name at most, its zero among them. */
enum { EXOS_SERVICE_NAME = 48, EXOS_SERVICE_WORDS = 4 };

/* Who offers a service, and what it says of itself. */
struct exos_service {
	uint32_t pid;
	uint32_t birth;
	uint32_t environment;
	uint32_t reserved;
	uint64_t words[EXOS_SERVICE_WORDS];
};

/* Offers a service until this process ends or becomes another program; offered again, it has other
   words. EEXIST: another process offers it. EPERM: mount points and `net` are no affair of a tree
   with limits of its own. */
int exos_serve(const char *name, const uint64_t words[EXOS_SERVICE_WORDS]);
int exos_serve_no_more(const char *name);
/* Finds one, without a call. ENOENT: nobody offers it. */
int exos_service(const char *name, struct exos_service *found);
/* The service of a place from 0 on, and its name. ENOENT: there is none. EINVAL: there is no such place,
   nor any behind it. */
int exos_service_at(unsigned place, struct exos_service *found, char name[EXOS_SERVICE_NAME]);

/* Blocks of the disk for this process alone until it ends, with what they held before: the number of
   the range. ENOSPC: there are not so many, or no disk. 0 blocks: all are given back. */
long exos_blocks(uint64_t count);
/* Parts of devices (endpoints, handlers, ranges of blocks) that this process may have: at least so
   many from now on; how many. EAGAIN: they are others', or more than a process may have. */
int exos_holdings(unsigned count);

#ifdef __cplusplus
}
#endif
#endif
