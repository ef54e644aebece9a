/* A lock, for clients on the network: who asks for it gets it if it is free, who has it gives it back. Requests come by UDP:
 * two bytes with the client's number, one before them with 1 to take it and 2 to release it. In the answer the byte two before
 * that is 1 if this was done. The owner shares the lock, and counts what was granted. */
#include "udp.h"

struct shared {
	volatile unsigned long holder, granted, refused;
};

long message(const unsigned long *in, unsigned long length, unsigned long endpoint)
{
	struct shared *shared = (struct shared *)0x100000;
	unsigned char *bytes = (unsigned char *)out;
	unsigned long client;

	if (!turned(in, length))
		return 0;
	client = bytes[48] << 8 | bytes[49];
	if (bytes[47] == 1 && !shared->holder) {
		shared->holder = client;
		shared->granted++;
		bytes[45] = 1;
	} else if (bytes[47] == 2 && shared->holder == client) {
		shared->holder = 0;
		bytes[45] = 1;
	} else {
		shared->refused++;
	}
	return send(out, 60) == 0;
}
