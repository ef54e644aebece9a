/* Sends back what comes, by TCP and UDP: one connection after the other. `echod PORT [CONNECTIONS [SECONDS]]`: so many, of which
 * one that is silent for so long, or takes nothing, is left; 0: without an end. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

static char bytes[16384];

static int bound(int kind, int port)
{
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(port)};
	int number = socket(AF_INET, kind, 0);

	if (number < 0 || bind(number, (struct sockaddr *)&own, sizeof own) < 0) {
		perror("echod");
		exit(1);
	}
	return number;
}

int main(int count, char **arguments)
{
	int port = count > 1 ? atoi(arguments[1]) : 7;
	int left = count > 2 && atoi(arguments[2]) > 0 ? atoi(arguments[2]) : -1;
	struct timeval patience = {.tv_sec = count > 3 ? atoi(arguments[3]) : 0};
	struct pollfd all[2] = {{.fd = bound(SOCK_STREAM, port), .events = POLLIN},
				{.fd = bound(SOCK_DGRAM, port), .events = POLLIN}};

	if (listen(all[0].fd, 8) < 0) {
		perror("listen");
		return 1;
	}
	printf("echod: port %d\n", port);
	fflush(stdout);
	while (left != 0 && poll(all, 2, -1) >= 0) {
		if (all[0].revents & POLLIN) {
			int with = accept(all[0].fd, 0, 0);
			ssize_t length;

			setsockopt(with, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
			setsockopt(with, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
			while ((length = read(with, bytes, sizeof bytes)) > 0)
				if (write(with, bytes, length) < length)
					break;
			close(with);
			left -= left > 0;
		}
		if (all[1].revents & POLLIN) {
			struct sockaddr_in from;
			socklen_t size = sizeof from;
			ssize_t length = recvfrom(all[1].fd, bytes, sizeof bytes, 0, (struct sockaddr *)&from, &size);

			if (length >= 0)
				sendto(all[1].fd, bytes, length, 0, (struct sockaddr *)&from, size);
		}
	}
	return 0;
}
