/* As pong.c; then the time is stored in the shared page, in a word of the message's own, and the message goes on to the
 * ring. */
#include "udp.h"

unsigned long now(void);

static unsigned long count;

long message(const unsigned long *in, unsigned long length, unsigned long endpoint)
{
	volatile unsigned long *when;
	unsigned char *counter = (unsigned char *)out + 42;

	if (!turned(in, length))
		return 0;
	if (!++counter[7] && !++counter[6] && !++counter[5] && !++counter[4] && !++counter[3] &&
	    !++counter[2] && !++counter[1])
		++counter[0];
	send(out, 60);
	when = (volatile unsigned long *)0x100000;
	when[count++ & 63] = now();
	return 0;
}
