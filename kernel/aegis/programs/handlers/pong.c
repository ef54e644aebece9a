/* A counter by UDP goes back plus one: 60 bytes, without a loop. */
#include "udp.h"

long message(const unsigned long *in, unsigned long length, unsigned long endpoint)
{
	unsigned char *counter = (unsigned char *)out + 42;

	if (!turned(in, length))
		return 0;
	if (!++counter[7] && !++counter[6] && !++counter[5] && !++counter[4] && !++counter[3] &&
	    !++counter[2] && !++counter[1])
		++counter[0];
	return send(out, 60) == 0;
}
