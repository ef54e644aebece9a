/* The configuration of newlib for extensions, and for programs of ExOS. */
#ifndef __NEWLIB_H__
#define __NEWLIB_H__ 1

#include <_newlib_version.h>

/* Formatted input and output: everything. */
#define _WANT_IO_C99_FORMATS 1
#define _WANT_IO_LONG_LONG 1
#define _WANT_IO_LONG_DOUBLE 1
#define _WANT_IO_POS_ARGS 1

/* Wide and multibyte characters; UTF-8 is a locale that setlocale knows. */
#define _MB_CAPABLE 1
#define _MB_LEN_MAX 8
#define _WIDE_ORIENT 1

#define _HAVE_LONG_DOUBLE 1
#define _HAVE_CC_INHIBIT_LOOP_TO_LIBCALL 1
#define HAVE_INITFINI_ARRAY 1
#define _ATEXIT_DYNAMIC_ALLOC 1

/* Streams. */
#define _FVWRITE_IN_STREAMIO 1
#define _FSEEK_OPTIMIZATION 1
#define _UNBUF_STREAM_OPT 1

#ifndef __exos__
/* Several threads of the host may be in one domain: locks are the library's, the streams and atexit
 * are the domain's. */
#define _RETARGETABLE_LOCKING 1
#define _WANT_REENT_GLOBAL_STDIO_STREAMS 1
#define _REENT_GLOBAL_ATEXIT 1
#define __DYNAMIC_REENT__ 1
#endif

/* read and write as POSIX has them. */
#define _READ_WRITE_RETURN_TYPE _ssize_t
#define _READ_WRITE_BUFSIZE_TYPE __SIZE_TYPE__

#ifdef __exos__
/* A process has one thread. */
#define __SINGLE_THREAD__ 1
#else
/* Options of POSIX that the layer above the service `sys` has. */
#define _POSIX_TIMERS 1
#define _POSIX_MONOTONIC_CLOCK 200112L
#define _POSIX_CLOCK_SELECTION 200112L
#define _POSIX_CPUTIME 200112L
#define _POSIX_THREAD_CPUTIME 200112L

/* Locks and what belongs to them are there; pthread_create answers EAGAIN. */
#define _POSIX_THREADS 200112L
#define _POSIX_TIMEOUTS 200112L
#define _POSIX_READER_WRITER_LOCKS 200112L
#define _POSIX_SPIN_LOCKS 200112L
#define _POSIX_BARRIERS 200112L
#define _POSIX_PRIORITY_SCHEDULING 200112L
#define _POSIX_MAPPED_FILES 200112L
#endif

#endif
