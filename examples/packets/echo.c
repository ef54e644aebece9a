/* Answers pings and UDP echo requests (port 7) to an address of its own: a handler for
 *
 *     postern filter -i eth0 --handler echo.c 'icmp or udp dst port 7'
 *
 * The request stays where it is, read-only; the answer is made in the window and sent. A checksum is the ones' complement of the
 * sum of 16-bit words, so that exchanging addresses or ports does not change it.
 */
#include <postern/packet.h>
#include <string.h>

enum { ETHER = 14, LONGEST = 2048 };

static unsigned half(const unsigned char *at)
{
	return at[0] << 8 | at[1];
}

static void exchange(unsigned char *a, unsigned char *b, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++) {
		unsigned char kept = a[i];
		a[i] = b[i];
		b[i] = kept;
	}
}

int handle(const unsigned char *packet, unsigned length, unsigned wire_length)
{
	static unsigned char answer[LONGEST];
	if (length != wire_length || length > LONGEST || length < ETHER + 20 + 8 || half(packet + 12) != 0x0800)
		return 0;
	unsigned header = (packet[ETHER] & 15) * 4;
	if (header < 20 || length < ETHER + header + 8 || half(packet + ETHER + 6) & 0x3fff)
		return 0;
	unsigned at = ETHER + header;
	int ping = packet[ETHER + 9] == 1 && packet[at] == 8;
	int echo = packet[ETHER + 9] == 17 && half(packet + at + 2) == 7;
	if (!ping && !echo)
		return 0;
	memcpy(answer, packet, length);
	exchange(answer, answer + 6, 6);
	exchange(answer + ETHER + 12, answer + ETHER + 16, 4);
	if (echo) {
		exchange(answer + at, answer + at + 2, 2);
	} else {
		/* From request to reply: the first word is less by 0x0800, so the checksum is more by it. */
		unsigned sum = half(answer + at + 2) + 0x0800;
		sum = (sum & 0xffff) + (sum >> 16);
		answer[at] = 0;
		answer[at + 2] = sum >> 8;
		answer[at + 3] = sum;
	}
	return packet_send(answer, length) == 0;
}
