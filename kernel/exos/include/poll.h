/* Waiting for several descriptors: sockets, pipes, the console. */
#ifndef EXOS_POLL_H
#define EXOS_POLL_H

#ifdef __cplusplus
extern "C" {
#endif

typedef unsigned long nfds_t;

struct pollfd {
	int fd;
	short events;
	short revents;
};

#define POLLIN 1
#define POLLPRI 2
#define POLLOUT 4
#define POLLERR 8
#define POLLHUP 0x10
#define POLLNVAL 0x20

int poll(struct pollfd *all, nfds_t count, int milliseconds);

#ifdef __cplusplus
}
#endif
#endif
