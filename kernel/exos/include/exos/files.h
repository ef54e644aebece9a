/* Files that a process serves to all others. */
#ifndef EXOS_FILES_H
#define EXOS_FILES_H

/* Serves an empty file system in this process's memory under a name that begins with `/`, of so many
   pages of 4,096 bytes at most, until it is unmounted. -1: that cannot be. */
int exos_files_in_memory(const char *name, unsigned pages);
/* Ends the server of a mount point. EBUSY: somebody has files of it open; EINVAL: it is no mount point. */
int exos_unmount(const char *path);

#endif
