
#if defined _LARGEFILE64_SOURCE || __GNU_VISIBLE
#ifndef _POSTERN_LARGE
#define _POSTERN_LARGE
typedef __off_t off64_t;
#define fseeko64 fseeko
#define ftello64 ftello
#define fopen64 fopen
#define freopen64 freopen
#define tmpfile64 tmpfile
#define lseek64 lseek
#define stat64 stat
#define fstat64 fstat
#define lstat64 lstat
#define ftruncate64 ftruncate
#define truncate64 truncate
#define pread64 pread
#define pwrite64 pwrite
#define mmap64 mmap
#define open64 open
#define mkstemp64 mkstemp
#define O_LARGEFILE 0
#endif
#endif
