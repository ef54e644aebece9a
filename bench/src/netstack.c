/* What `netstack.rs` measures: `sink`, `source`, `echo`, `ask`, `forward`, `flood` and `count`,
 * each for some seconds, by plain sockets. Who counts prints a number. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static char bytes[1 << 16];

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

static struct sockaddr_in name(const char *address, int port)
{
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port)};
	inet_pton(AF_INET, address, &name.sin_addr);
	return name;
}

static int made(int kind, int port)
{
	struct sockaddr_in own = name("0.0.0.0", port);
	int file = socket(AF_INET, kind, 0), one = 1;
	setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (port && bind(file, (void *)&own, sizeof own)) {
		perror("bind");
		exit(1);
	}
	return file;
}

static int accepted(int port)
{
	int file = made(SOCK_STREAM, port), one = 1;
	listen(file, 1);
	file = accept(file, NULL, NULL);
	setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	return file;
}

static int connected(const char *address, int port)
{
	struct sockaddr_in to = name(address, port);
	int file, one = 1, tries = 0;
	while (file = made(SOCK_STREAM, 0), connect(file, (void *)&to, sizeof to)) {
		close(file);
		if (tries++ == 100)
			exit(1);
		usleep(50000);
	}
	setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	return file;
}

int main(int count, char **words)
{
	if (count < 5)
		return 2;
	const char *what = words[1], *address = words[2];
	int port = atoi(words[3]), file;
	double seconds = atof(words[4]), begun, all = 0;
	long got;
	if (strcmp(what, "sink") == 0) {
		file = accepted(port);
		for (begun = now(); now() - begun < seconds && (got = read(file, bytes, sizeof bytes)) > 0;)
			all += got;
		printf("%.3f\n", all * 8 / 1e9 / (now() - begun));
	} else if (strcmp(what, "source") == 0) {
		file = connected(address, port);
		for (begun = now(); now() - begun < seconds && write(file, bytes, sizeof bytes) > 0;)
			;
	} else if (strcmp(what, "echo") == 0) {
		file = accepted(port);
		while ((got = read(file, bytes, sizeof bytes)) > 0)
			if (write(file, bytes, got) != got)
				break;
	} else if (strcmp(what, "ask") == 0) {
		file = connected(address, port);
		for (begun = now(); now() - begun < seconds && write(file, bytes, 1) == 1; all++)
			if (read(file, bytes, 1) != 1)
				break;
		printf("%.1f\n", (now() - begun) * 1e6 / all);
	} else if (strcmp(what, "forward") == 0) {
		struct sockaddr_in to = name(address, port + 1);
		struct timeval limit = {1, 0};
		file = made(SOCK_DGRAM, port);
		setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
		for (begun = now(); now() - begun < seconds;)
			if ((got = recv(file, bytes, sizeof bytes, 0)) > 0)
				sendto(file, bytes, got, 0, (void *)&to, sizeof to);
	} else if (strcmp(what, "flood") == 0) {
		struct sockaddr_in to = name(address, port);
		file = made(SOCK_DGRAM, 0);
		/* So many at once that all that forward are busy, and none of them is drowned. */
		for (begun = now(); now() - begun < seconds; usleep(200))
			for (int part = 0; part < 32; part++)
				sendto(file, bytes, 1000, 0, (void *)&to, sizeof to);
	} else if (strcmp(what, "count") == 0) {
		struct timeval limit = {0, 200000};
		file = made(SOCK_DGRAM, port);
		setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
		for (begun = now(); now() - begun < seconds;)
			if ((got = recv(file, bytes, sizeof bytes, 0)) > 0)
				all += got;
		printf("%.3f\n", all * 8 / 1e6 / (now() - begun));
	} else {
		return 2;
	}
}
