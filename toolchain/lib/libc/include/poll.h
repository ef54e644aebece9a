/* Whether files are ready: the streams and files of an extension always are. */
#ifndef _POLL_H
#define _POLL_H

#include <signal.h>
#include <sys/cdefs.h>
#include <time.h>

__BEGIN_DECLS

typedef unsigned long nfds_t;
struct pollfd {
    int fd;
    short events, revents;
};
#define POLLIN 1
#define POLLPRI 2
#define POLLOUT 4
#define POLLERR 8
#define POLLHUP 0x10
#define POLLNVAL 0x20
#define POLLRDNORM 0x40
#define POLLRDBAND 0x80
#define POLLWRNORM 0x100
#define POLLWRBAND 0x200

int poll(struct pollfd *, nfds_t, int);
int ppoll(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);

__END_DECLS

#endif
