/* traffic NETWORK... : sends a hundred packets to the loopback from an address of each network (127.A.B.0/24,
 * written A.B), and says how many arrived. With -s SECONDS it does so again and again. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PACKETS 100

static int receiver;
static struct sockaddr_in here = { .sin_family = AF_INET };

/* How many of the packets from 127.a.b.1 arrive. */
static int arrived(unsigned a, unsigned b)
{
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001 | a << 16 | b << 8) };
	int sender = socket(AF_INET, SOCK_DGRAM, 0), count = 0;
	char byte = 0;

	if (sender < 0 || bind(sender, (void *)&from, sizeof from))
		return perror("traffic"), exit(1), 0;
	for (int k = 0; k < PACKETS; k++) {
		/* A packet that the filter drops is an error of the sender's. */
		sendto(sender, &byte, 1, 0, (void *)&here, sizeof here);
		count += recv(receiver, &byte, 1, MSG_DONTWAIT) == 1;
	}
	close(sender);
	return count;
}

int main(int count, char **words)
{
	socklen_t length = sizeof here;
	time_t end = 0;
	int first = 1;
	long sent = 0, passed = 0;

	if (count > 3 && !strcmp(words[1], "-s"))
		end = time(NULL) + atoi(words[2]), first = 3;
	receiver = socket(AF_INET, SOCK_DGRAM, 0);
	here.sin_addr.s_addr = htonl(INADDR_ANY);
	if (bind(receiver, (void *)&here, sizeof here) || getsockname(receiver, (void *)&here, &length))
		return perror("traffic"), 1;
	here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	do
		for (int k = first; k < count; k++) {
			unsigned a, b;
			int here;

			if (sscanf(words[k], "%u.%u", &a, &b) != 2)
				return fprintf(stderr, "traffic: %s is no A.B\n", words[k]), 1;
			here = arrived(a, b);
			sent += PACKETS, passed += here;
			if (!end)
				printf("from 127.%u.%u.1: %3d of %d packets arrive\n", a, b, here, PACKETS);
		}
	while (time(NULL) < end);
	if (end)
		printf("%ld packets sent, %ld arrived\n", sent, passed);
	return 0;
}
