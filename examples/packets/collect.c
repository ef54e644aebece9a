/* Moves the payload of UDP packets into the handler's area, one behind the other: the area begins with the number of bytes that
 * are used. Whoever else maps the area's file reads there what came, and nobody copied it in between:
 *
 *     postern filter -i eth0 --handler collect.c --area payload 1048576 'udp port 514'
 */
#include <postern/packet.h>
#include <string.h>

int handle(const unsigned char *packet, unsigned length, unsigned wire_length)
{
	unsigned size;
	unsigned char *area = packet_area(&size);
	unsigned start = 14 + (length > 14 ? (packet[14] & 15) * 4 : 0) + 8;
	if (!area || size < sizeof size || length < start || wire_length < start)
		return 0;
	unsigned used;
	memcpy(&used, area, sizeof used);
	if (used < sizeof used)
		used = sizeof used;
	if (used > size || length - start > size - used)
		return 0;
	memcpy(area + used, packet + start, length - start);
	used += length - start;
	memcpy(area, &used, sizeof used);
	return 1;
}
