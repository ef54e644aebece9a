/* Addresses of IP. */
#ifndef EXOS_NETINET_IN_H
#define EXOS_NETINET_IN_H

#include <stdint.h>
#include <sys/socket.h>

typedef uint16_t in_port_t;

struct in_addr {
	in_addr_t s_addr;
};

struct sockaddr_in {
	sa_family_t sin_family;
	in_port_t sin_port;
	struct in_addr sin_addr;
	unsigned char sin_zero[8];
};

#define IPPROTO_IP 0
#define IPPROTO_ICMP 1
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17

#define INADDR_ANY ((in_addr_t)0)
#define INADDR_BROADCAST ((in_addr_t)0xffffffff)
#define INADDR_NONE ((in_addr_t)0xffffffff)
#define INADDR_LOOPBACK ((in_addr_t)0x7f000001)
#define INET_ADDRSTRLEN 16

#ifndef htons
#define htons(half) __builtin_bswap16(half)
#define ntohs(half) __builtin_bswap16(half)
#define htonl(word) __builtin_bswap32(word)
#define ntohl(word) __builtin_bswap32(word)
#endif

#endif
