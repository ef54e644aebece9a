/* Sends a line to a host's port and shows what comes back. `ask tcp|udp HOST PORT LINE` */
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include <netdb.h>
#include <sys/socket.h>

int main(int count, char **arguments)
{
	int datagram = count > 1 && !strcmp(arguments[1], "udp");
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = datagram ? SOCK_DGRAM : SOCK_STREAM}, *found;
	struct timeval patience = {.tv_sec = 10};
	char bytes[2048];
	ssize_t length;
	int error, number;

	if (count != 5) {
		fprintf(stderr, "usage: ask tcp|udp HOST PORT LINE\n");
		return 2;
	}
	error = getaddrinfo(arguments[2], arguments[3], &hints, &found);
	if (error) {
		fprintf(stderr, "ask: %s: %s\n", arguments[2], gai_strerror(error));
		return 1;
	}
	number = socket(found->ai_family, found->ai_socktype, found->ai_protocol);
	setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	if (connect(number, found->ai_addr, found->ai_addrlen) < 0) {
		perror("ask: connect");
		return 1;
	}
	if (write(number, arguments[4], strlen(arguments[4])) < 0) {
		perror("ask: write");
		return 1;
	}
	if (!datagram)
		shutdown(number, SHUT_WR);
	do {
		length = read(number, bytes, sizeof bytes);
		if (length > 0)
			fwrite(bytes, 1, length, stdout);
	} while (!datagram && length > 0);
	puts("");
	freeaddrinfo(found);
	if (length < 0)
		perror("ask: read");
	return length < 0;
}
