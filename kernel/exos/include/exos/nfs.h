/* Folders of other machines, by NFS version 3. */
#ifndef EXOS_NFS_H
#define EXOS_NFS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is mounted, and how. What is 0 is as usual. */
struct exos_nfs {
	const char *host;       /* a name or an address */
	const char *export;     /* the folder's name there */
	uint16_t port;          /* of NFS; 0: the port mapper knows it */
	uint16_t mount_port;    /* of MOUNT */
	uint32_t user, group;   /* numbers that the server knows the user by */
	uint32_t timeout;       /* milliseconds that an answer is waited for, at first */
	uint32_t tries;         /* times that a message is sent */
	uint8_t stream;         /* by TCP */
	uint8_t reads_only;     /* nothing is changed */
};

struct exos_nfs_folder;

/* Mounts a folder. NULL: `errno` says why, and `*words` what has failed. */
struct exos_nfs_folder *exos_nfs_mount(const struct exos_nfs *what, const char **words);
/* Serves it to all others under a name that begins with `/`, until it is unmounted. -1: that cannot be. */
int exos_nfs_serve(struct exos_nfs_folder *folder, const char *name);

#ifdef __cplusplus
}
#endif
#endif
