/* Reading into and writing from several buffers. */
#ifndef _SYS_UIO_H
#define _SYS_UIO_H

#include <sys/cdefs.h>
#include <sys/types.h>

__BEGIN_DECLS

#define UIO_MAXIOV 1024
struct iovec {
    void *iov_base;
    size_t iov_len;
};
ssize_t readv(int, const struct iovec *, int);
ssize_t writev(int, const struct iovec *, int);

__END_DECLS

#endif
