/* Sockets between processes of one machine, and all calls on them. The file `net` names this machine as the server for names,
 * and `hosts` has a name. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exos/net.h>

#include "../tests/check.h"

static in_addr_t own;

static struct sockaddr_in at(in_addr_t host, int port)
{
	return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {host}};
}

static int connected(int kind, in_addr_t host, int port)
{
	struct sockaddr_in to = at(host, port);
	int number = socket(AF_INET, kind, 0);

	if (number >= 0 && connect(number, (struct sockaddr *)&to, sizeof to) < 0) {
		int error = errno;

		close(number);
		errno = error;
		return -1;
	}
	return number;
}

static int bound(int kind, in_addr_t host, int port)
{
	struct sockaddr_in to = at(host, port);
	int number = socket(AF_INET, kind, 0);

	if (bind(number, (struct sockaddr *)&to, sizeof to) < 0) {
		close(number);
		return -1;
	}
	if (kind == SOCK_STREAM)
		listen(number, 4);
	return number;
}

static int patient(int number, int milliseconds)
{
	struct timeval time = {milliseconds / 1000, milliseconds % 1000 * 1000};

	return setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
}

/* A child that serves, and says through a pipe that it does. */
static pid_t child(void (*serve)(void))
{
	int ends[2];
	char byte;
	pid_t pid;

	pipe(ends);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		dup2(ends[1], 9);
		serve();
		_exit(0);
	}
	close(ends[1]);
	read(ends[0], &byte, 1);
	close(ends[0]);
	return pid;
}

static int ended_well(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && status == 0;
}

#define BYTES 300000
static unsigned char bytes[BYTES], back[BYTES];

static void echo_twice(void)
{
	int number = bound(SOCK_STREAM, INADDR_ANY, 7001);

	write(9, "", 1);
	for (int i = 0; i < 2; i++) {
		int with = accept(number, 0, 0);
		char some[5000];
		ssize_t length;

		while ((length = read(with, some, sizeof some)) > 0)
			write(with, some, length);
		close(with);
	}
}

static int echoed(in_addr_t host)
{
	int number = connected(SOCK_STREAM, host, 7001);
	size_t sent = 0, got = 0;
	ssize_t length;

	if (number < 0)
		return 0;
	fcntl(number, F_SETFL, O_NONBLOCK);
	while (got < BYTES) {
		struct pollfd poll_ = {number, POLLIN | (sent < BYTES ? POLLOUT : 0), 0};

		if (poll(&poll_, 1, 20000) != 1)
			break;
		if (poll_.revents & POLLOUT && sent < BYTES && (length = write(number, bytes + sent, BYTES - sent)) > 0) {
			sent += length;
			if (sent == BYTES)
				shutdown(number, SHUT_WR);
		}
		if (poll_.revents & POLLIN) {
			length = read(number, back + got, BYTES - got);
			if (length <= 0)
				break;
			got += length;
		}
	}
	close(number);
	return got == BYTES && !memcmp(bytes, back, BYTES);
}

static void connections_within(void)
{
	pid_t pid = child(echo_twice);

	for (int i = 0; i < BYTES; i++)
		bytes[i] = i * 7 + i / 256;
	CHECK(echoed(htonl(INADDR_LOOPBACK)));
	CHECK(echoed(own));
	CHECK(ended_well(pid));
}

/* Both ends in one process. */
static void with_itself(void)
{
	int number = bound(SOCK_STREAM, htonl(INADDR_LOOPBACK), 7002);
	struct sockaddr_in name;
	socklen_t size = sizeof name;
	int one, other;
	char some[8];

	CHECK(number >= 0);
	one = connected(SOCK_STREAM, htonl(INADDR_LOOPBACK), 7002);
	CHECK(one >= 0);
	other = accept(number, (struct sockaddr *)&name, &size);
	CHECK(other >= 0 && name.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
	CHECK(getsockname(other, (struct sockaddr *)&name, &size) == 0 && ntohs(name.sin_port) == 7002);
	CHECK(name.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
	CHECK(getpeername(one, (struct sockaddr *)&name, &size) == 0 && ntohs(name.sin_port) == 7002);
	CHECK(write(one, "hello", 5) == 5 && read(other, some, sizeof some) == 5);
	/* An inner port is not one of the address that others see. */
	CHECK(connected(SOCK_STREAM, own, 7002) < 0 && errno == ECONNREFUSED);
	close(one);
	CHECK(read(other, some, sizeof some) == 0);
	close(other);
	close(number);
}

static void closed_ports_refuse(void)
{
	in_addr_t all[] = {htonl(INADDR_LOOPBACK), own};
	char some[8];

	for (int i = 0; i < 2; i++) {
		int number;

		CHECK(connected(SOCK_STREAM, all[i], 7003) < 0 && errno == ECONNREFUSED);
		number = connected(SOCK_DGRAM, all[i], 7003);
		CHECK(number >= 0 && send(number, "word", 4, 0) == 4);
		patient(number, 5000);
		CHECK(recv(number, some, sizeof some, 0) < 0 && errno == ECONNREFUSED);
		close(number);
	}
}

static void udp_echo(void)
{
	int number = bound(SOCK_DGRAM, INADDR_ANY, 7004);
	struct sockaddr_in from;
	socklen_t size;
	char some[2000];
	ssize_t length;

	write(9, "", 1);
	do {
		size = sizeof from;
		length = recvfrom(number, some, sizeof some, 0, (struct sockaddr *)&from, &size);
		sendto(number, some, length, 0, (struct sockaddr *)&from, size);
	} while (length != 1);
}

static void datagrams_within(void)
{
	pid_t pid = child(udp_echo);
	int number = connected(SOCK_DGRAM, htonl(INADDR_LOOPBACK), 7004), other;
	char some[2000];

	patient(number, 5000);
	for (int length = 2; length <= 1472; length += 294) {
		CHECK(send(number, bytes, length, 0) == length);
		CHECK(recv(number, some, sizeof some, 0) == length && !memcmp(some, bytes, length));
	}
	CHECK(send(number, bytes, 1473, 0) < 0 && errno == EMSGSIZE);
	/* A port is one process's. */
	other = bound(SOCK_DGRAM, INADDR_ANY, 7004);
	CHECK(other < 0 && errno == EADDRINUSE);
	CHECK(send(number, bytes, 1, 0) == 1 && recv(number, some, sizeof some, 0) == 1);
	close(number);
	CHECK(ended_well(pid));
	other = bound(SOCK_DGRAM, INADDR_ANY, 7004);
	CHECK(other >= 0);
	close(other);
}

static void messages_have_pieces(void)
{
	int number = bound(SOCK_DGRAM, htonl(INADDR_LOOPBACK), 7005), out = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in to = at(htonl(INADDR_LOOPBACK), 7005), from;
	char a[] = "one, ", b[] = "two", c[4], d[20];
	struct iovec sends[] = {{a, 5}, {b, 3}}, takes[] = {{c, 4}, {d, 20}};
	struct msghdr message = {.msg_name = &to, .msg_namelen = sizeof to, .msg_iov = sends, .msg_iovlen = 2};

	patient(number, 5000);
	CHECK(sendmsg(out, &message, 0) == 8);
	message = (struct msghdr){.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = takes, .msg_iovlen = 2};
	CHECK(recvmsg(number, &message, 0) == 8);
	CHECK(!memcmp(c, "one,", 4) && !memcmp(d, " two", 4));
	CHECK(message.msg_namelen == sizeof from && from.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
	CHECK(recv(number, c, 4, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	close(out);
	close(number);
}

static void select_waits(void)
{
	int number = bound(SOCK_STREAM, INADDR_ANY, 7006), one, other, ends[2];
	struct timeval time = {0, 50000};
	fd_set reads, writes;
	char some[4];

	pipe(ends);
	FD_ZERO(&reads);
	FD_SET(number, &reads);
	FD_SET(ends[0], &reads);
	CHECK(select(20, &reads, 0, 0, &time) == 0 && !FD_ISSET(number, &reads));
	one = connected(SOCK_STREAM, own, 7006);
	time = (struct timeval){5, 0};
	FD_SET(number, &reads);
	FD_SET(ends[0], &reads);
	CHECK(select(20, &reads, 0, 0, &time) == 1 && FD_ISSET(number, &reads) && !FD_ISSET(ends[0], &reads));
	other = accept(number, 0, 0);
	write(ends[1], "x", 1);
	FD_ZERO(&reads);
	FD_ZERO(&writes);
	FD_SET(other, &reads);
	FD_SET(ends[0], &reads);
	FD_SET(one, &writes);
	CHECK(select(20, &reads, &writes, 0, 0) == 2 && FD_ISSET(one, &writes) && FD_ISSET(ends[0], &reads));
	close(one);
	FD_ZERO(&reads);
	FD_SET(other, &reads);
	CHECK(select(20, &reads, 0, 0, 0) == 1 && read(other, some, 4) == 0);
	close(other);
	FD_ZERO(&reads);
	FD_SET(other, &reads);
	CHECK(select(20, &reads, 0, 0, 0) < 0 && errno == EBADF);
	close(ends[0]);
	close(ends[1]);
	close(number);
}

static int sum(const unsigned char *all, int length)
{
	unsigned sum = 0;

	for (int i = 0; i < length; i += 2)
		sum += all[i] << 8 | (i + 1 < length ? all[i + 1] : 0);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum & 0xffff;
}

static int pings(in_addr_t host, int number)
{
	unsigned char echo[40] = {8, 0, 0, 0, 0x12, 0x34, 0, number}, answer[200];
	struct sockaddr_in to = at(host, 0), from;
	socklen_t size = sizeof from;
	int raw = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), checked = sum(echo, sizeof echo);
	ssize_t length;

	echo[2] = checked >> 8;
	echo[3] = checked;
	patient(raw, 5000);
	if (sendto(raw, echo, sizeof echo, 0, (struct sockaddr *)&to, sizeof to) < 0)
		return 0;
	do
		length = recvfrom(raw, answer, sizeof answer, 0, (struct sockaddr *)&from, &size);
	while (length > 0 && answer[20] != 0);
	close(raw);
	return length == 60 && from.sin_addr.s_addr == host && answer[27] == number;
}

static void raw_sockets_ping(void)
{
	struct exos_network net;

	CHECK(pings(htonl(INADDR_LOOPBACK), 1));
	CHECK(pings(own, 2));
	exos_net(&net);
	CHECK(pings(net.gateway, 3));
}

/* A server for names: one that is there, one that is not, lies, and silence. */
static void name_server(void)
{
	int number = bound(SOCK_DGRAM, INADDR_ANY, 53);
	struct sockaddr_in from;
	unsigned char some[600];
	ssize_t length;

	write(9, "", 1);
	for (;;) {
		static const unsigned char record[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 10, 1, 2, 3};
		socklen_t size = sizeof from;

		length = recvfrom(number, some, 500, 0, (struct sockaddr *)&from, &size);
		if (length < 17)
			continue;
		some[2] |= 0x80;
		switch (some[13]) {
		case 'e':	/* end */
			return;
		case 'n':	/* none */
			some[3] = 3;
			break;
		case 'l':	/* lies first: another question, lengths, an endless name, another number; then the truth */
			some[7] = 1;
			memcpy(some + length, record, sizeof record);
			some[length + 11] = 200;
			some[14] ^= 1;
			sendto(number, some, length + 16, 0, (struct sockaddr *)&from, size);
			some[14] ^= 1;
			some[0] ^= 1;
			sendto(number, some, length + 16, 0, (struct sockaddr *)&from, size);
			sendto(number, some, 3, 0, (struct sockaddr *)&from, size);
			some[0] ^= 1;
			/* fall through */
		default:
			some[7] = 1;
			memcpy(some + length, record, sizeof record);
			length += sizeof record;
		}
		sendto(number, some, length, 0, (struct sockaddr *)&from, size);
	}
}

static void names_have_addresses(void)
{
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
	struct hostent *host;
	pid_t pid;

	CHECK(getaddrinfo("10.9.8.7", "80", &hints, &found) == 0);
	CHECK(((struct sockaddr_in *)found->ai_addr)->sin_addr.s_addr == inet_addr("10.9.8.7"));
	freeaddrinfo(found);
	CHECK(getaddrinfo("filed", "http", &hints, &found) == 0);
	CHECK(((struct sockaddr_in *)found->ai_addr)->sin_addr.s_addr == inet_addr("10.7.7.7"));
	CHECK(ntohs(((struct sockaddr_in *)found->ai_addr)->sin_port) == 80);
	freeaddrinfo(found);
	hints.ai_flags = AI_NUMERICHOST;
	CHECK(getaddrinfo("filed", "80", &hints, &found) == EAI_NONAME);
	pid = child(name_server);
	host = gethostbyname("there.example");
	CHECK(host && host->h_length == 4 && *(in_addr_t *)host->h_addr == inet_addr("10.1.2.3") && !host->h_addr_list[1]);
	host = gethostbyname("liar.example");
	CHECK(host && *(in_addr_t *)host->h_addr == inet_addr("10.1.2.3"));
	CHECK(!gethostbyname("none.example") && h_errno == HOST_NOT_FOUND);
	hints.ai_flags = 0;
	CHECK(getaddrinfo("none.example", "80", &hints, &found) == EAI_NONAME);
	/* The last question ends it; and then there is no server. */
	CHECK(!gethostbyname("end.example") && h_errno == TRY_AGAIN);
	CHECK(ended_well(pid));
}

static void copies_have_none(void)
{
	int number = bound(SOCK_STREAM, INADDR_ANY, 7007), with, one, status;
	char some[8], *again[] = {"sockets", "fd", some, 0};
	pid_t pid = fork();

	if (!pid) {
		struct sockaddr_in name;
		socklen_t size = sizeof name;

		_exit(!(getsockname(number, (struct sockaddr *)&name, &size) < 0 && errno == ENOTCONN &&
			accept(number, 0, 0) < 0 && errno == ENOTCONN && close(number) == 0));
	}
	CHECK(ended_well(pid));
	/* The parent's is as it was, and another program has none. */
	one = connected(SOCK_STREAM, own, 7007);
	with = accept(number, 0, 0);
	CHECK(one >= 0 && with >= 0 && write(one, "hi", 2) == 2 && read(with, some, 2) == 2);
	sprintf(some, "%d", number);
	pid = fork();
	if (!pid) {
		execv("sockets", again);
		_exit(9);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(write(with, "ho", 2) == 2 && read(one, some, 2) == 2);
	close(one);
	close(with);
	close(number);
}

static int after_exec(int number)
{
	char some[2];

	return !(read(number, some, 2) < 0 && (errno == EBADF || errno == ENOTCONN));
}

int main(int count, char **arguments)
{
	struct exos_network net;

	if (count == 3)
		return after_exec(atoi(arguments[2]));
	for (int i = 0; exos_net(&net) < 0 || net.state != 2; i++) {
		if (i == 600) {
			printf("no network\n");
			return 1;
		}
		usleep(100000);
	}
	own = net.address;
	RUN(connections_within);
	RUN(with_itself);
	RUN(closed_ports_refuse);
	RUN(datagrams_within);
	RUN(messages_have_pieces);
	RUN(select_waits);
	RUN(raw_sockets_ping);
	RUN(names_have_addresses);
	RUN(copies_have_none);
	printf("sockets: %d failures\n", failures);
	return failures != 0;
}
