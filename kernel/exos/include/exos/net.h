/* The service `net`: one process has this machine's address, and all read what it says. */
#ifndef EXOS_NET_H
#define EXOS_NET_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where this machine is. Addresses are as in `struct in_addr`; 0: none. */
struct exos_network {
	uint32_t state; /* 0: no network, 1: an address is asked for, 2: there is one, 3: somebody else has it, too */
	uint32_t bits;
	uint32_t address;
	uint32_t gateway;
	uint32_t servers[3];
	uint8_t hardware[6];
	uint8_t reserved[2];
};

/* Serves until a signal ends the process. -1: there is no network, or another process serves. */
int exos_net_serve(void);
/* What the service says now. ENETDOWN: there is none. */
int exos_net(struct exos_network *network);
/* What the kernel and the service have counted: the name of a count, from index 0 on; NULL behind the last one. */
const char *exos_net_count(int index, uint64_t *count);

#ifdef __cplusplus
}
#endif
#endif
