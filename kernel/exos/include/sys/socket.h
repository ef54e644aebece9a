/* Sockets: TCP, UDP, and ICMP for who asks for echoes, over IP. A process does its own TCP; a copy of
   it has the same descriptors and no sockets, so calls on them are ENOTCONN there. exec closes them. */
#ifndef EXOS_SYS_SOCKET_H
#define EXOS_SYS_SOCKET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t socklen_t;
typedef uint16_t sa_family_t;

struct sockaddr {
	sa_family_t sa_family;
	char sa_data[14];
};

struct sockaddr_storage {
	sa_family_t ss_family;
	char ss_data[126];
} __attribute__((aligned(8)));

struct msghdr {
	void *msg_name;
	socklen_t msg_namelen;
	struct iovec *msg_iov;
	size_t msg_iovlen;
	/* There are no control messages. */
	void *msg_control;
	size_t msg_controllen;
	int msg_flags;
};

struct linger {
	int l_onoff;
	int l_linger;
};

#define AF_UNSPEC 0
#define AF_INET 2
#define AF_INET6 10
#define PF_UNSPEC AF_UNSPEC
#define PF_INET AF_INET
#define PF_INET6 AF_INET6

#define SOCK_STREAM 1
#define SOCK_DGRAM 2
#define SOCK_RAW 3
#define SOCK_NONBLOCK 04000
#define SOCK_CLOEXEC 02000000

#define SOL_SOCKET 1
#define SO_REUSEADDR 2
#define SO_TYPE 3
#define SO_ERROR 4
#define SO_BROADCAST 6
#define SO_SNDBUF 7
#define SO_RCVBUF 8
#define SO_KEEPALIVE 9
#define SO_LINGER 13
#define SO_RCVTIMEO 20
#define SO_SNDTIMEO 21
#define SO_ACCEPTCONN 30

#define SOMAXCONN 8

#define MSG_PEEK 2
#define MSG_TRUNC 0x20
#define MSG_DONTWAIT 0x40
#define MSG_WAITALL 0x100
#define MSG_NOSIGNAL 0x4000

#define SHUT_RD 0
#define SHUT_WR 1
#define SHUT_RDWR 2

int socket(int family, int kind, int protocol);
int bind(int socket, const struct sockaddr *address, socklen_t length);
int listen(int socket, int backlog);
int accept(int socket, struct sockaddr *address, socklen_t *length);
int accept4(int socket, struct sockaddr *address, socklen_t *length, int flags);
int connect(int socket, const struct sockaddr *address, socklen_t length);
ssize_t send(int socket, const void *bytes, size_t count, int flags);
ssize_t sendto(int socket, const void *bytes, size_t count, int flags, const struct sockaddr *address,
	       socklen_t length);
ssize_t sendmsg(int socket, const struct msghdr *message, int flags);
ssize_t recv(int socket, void *bytes, size_t count, int flags);
ssize_t recvfrom(int socket, void *bytes, size_t count, int flags, struct sockaddr *address,
		 socklen_t *length);
ssize_t recvmsg(int socket, struct msghdr *message, int flags);
int shutdown(int socket, int how);
int getsockname(int socket, struct sockaddr *address, socklen_t *length);
int getpeername(int socket, struct sockaddr *address, socklen_t *length);
int getsockopt(int socket, int level, int option, void *value, socklen_t *length);
int setsockopt(int socket, int level, int option, const void *value, socklen_t length);

#ifdef __cplusplus
}
#endif
#endif
