/* Files that a process serves to all others. */
#ifndef EXOS_FILES_H
#define EXOS_FILES_H

/* Serves an empty file system in this process's memory under a name that begins with `/`, of so many
   pages of 4,096 bytes at most. Comes back only if that cannot be: -1. */
int exos_files_in_memory(const char *name, unsigned pages);

#endif
