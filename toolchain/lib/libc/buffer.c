/* How a stream is buffered, in place of newlib's makebuf.c. The standard output of a program (there
 * is a main) is as everywhere: by line on a terminal, else in full, written out by exit. That of a
 * library, which the host calls again and again and which nobody exits, is buffered by line, so
 * that no line waits for a later call. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "call.h"

void _cleanup_r(struct _reent *);
extern int __postern_main(int, char **) __attribute__((weak));

int __swhatbuf_r(struct _reent *reent, FILE *file, size_t *size, int *terminal)
{
    struct stat status;
    *terminal = 0;
    /* The first buffer of asprintf and its kind. */
    *size = file->_flags & __SMBF ? 64 : BUFSIZ;
    if (file->_file < 0 || (file->_flags & __SMBF))
        return 0;
    if (file->_file == STDOUT_FILENO && !__postern_main)
        *terminal = 1;
    if (_fstat_r(reent, file->_file, &status) < 0)
        return 0;
    if (S_ISCHR(status.st_mode) && _isatty_r(reent, file->_file))
        *terminal = 1;
    if (status.st_blksize > 0 && status.st_blksize <= 65536)
        *size = (size_t)status.st_blksize;
    file->_blksize = (int)*size;
    return S_ISREG(status.st_mode) ? __SOPT : __SNPT;
}

void __smakebuf_r(struct _reent *reent, FILE *file)
{
    size_t size;
    int terminal;
    if (!(file->_flags & __SNBF)) {
        int flags = __swhatbuf_r(reent, file, &size, &terminal);
        void *buffer = _malloc_r(reent, size);
        if (buffer) {
            reent->__cleanup = _cleanup_r;
            file->_flags |= __SMBF | flags;
            if (terminal)
                file->_flags |= __SLBF;
            file->_bf._base = file->_p = buffer;
            file->_bf._size = (int)size;
            return;
        }
        if (file->_flags & __SSTR)
            return;
        file->_flags = (file->_flags & ~__SLBF) | __SNBF;
    }
    file->_bf._base = file->_p = file->_nbuf;
    file->_bf._size = 1;
}
