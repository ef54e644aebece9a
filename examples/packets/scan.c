/* Packets in which a word stands, wherever it stands: what an expression cannot say.
 *
 *     postern filter -r all.pcap --program scan.c
 */
#include <postern/packet.h>
#include <string.h>

static const char word[] = "password";

int filter(const unsigned char *packet, unsigned length, unsigned wire_length)
{
	(void)wire_length;
	for (unsigned i = 0; i + sizeof word - 1 <= length; i++)
		if (memcmp(packet + i, word, sizeof word - 1) == 0)
			return 1;
	return 0;
}
