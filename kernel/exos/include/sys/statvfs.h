/* How full a file system is, with Linux's numbers. Blocks are of 4,096 bytes; what is free anybody may
   take. */
#ifndef EXOS_SYS_STATVFS_H
#define EXOS_SYS_STATVFS_H

#include <sys/types.h>

#define ST_RDONLY 1
#define ST_NOSUID 2

#ifdef __cplusplus
extern "C" {
#endif

struct statvfs {
	unsigned long f_bsize, f_frsize;
	fsblkcnt_t f_blocks, f_bfree, f_bavail;
	fsfilcnt_t f_files, f_ffree, f_favail;
	unsigned long f_fsid, f_flag, f_namemax;
};

int statvfs(const char *__restrict name, struct statvfs *__restrict to);
int fstatvfs(int descriptor, struct statvfs *to);

#ifdef __cplusplus
}
#endif
#endif
