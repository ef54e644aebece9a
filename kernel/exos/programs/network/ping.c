/* Asks a host for echoes, and says how long they took. Ends with 0 if one came, with 1 if none did, with 2 for what cannot be
 * asked. */
#include "../tools/tool.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/time.h>

#define USAGE "[-q] [-c COUNT] [-i SECONDS] [-s BYTES] [-W SECONDS] HOST"

static const char help[] =
	"usage: ping " USAGE "\n"
	"Asks HOST for echoes.\n"
	"  -c COUNT    so many times (until Ctrl-C)\n"
	"  -i SECONDS  once in so many seconds (1), which need not be whole\n"
	"  -s BYTES    with so many bytes besides the header (56), at most 1472\n"
	"  -W SECONDS  waits so long for the last answer (2)\n"
	"  -q          only the sum\n"
	"Ends with 0 if an answer came, 1 if none did, 2 if it cannot ask.\n";

enum { HEADER = 8, MOST = 1472, TIMES = 128 };

static struct {
	long count, sent, received, repeated, refused;
	/* Microseconds. */
	int64_t least, most, all;
	/* When each of the last ones went; 0: its answer came. */
	int64_t went[TIMES];
} all = {.count = -1, .least = INT64_MAX};

static struct sockaddr_in host;
static int raw, quiet, bytes = 56;
static uint16_t number;
static unsigned char packet[HEADER + MOST];
static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

static int64_t now(void)
{
	struct timeval time;

	gettimeofday(&time, NULL);
	return (int64_t)time.tv_sec * 1000000 + time.tv_usec;
}

static unsigned sum(const unsigned char *at, int length)
{
	unsigned sum = 0;

	for (int i = 0; i < length; i++)
		sum += i % 2 ? at[i] : at[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum & 0xffff;
}

/* A number of seconds in microseconds; ends the tool if it is none. */
static int64_t time_of(const char *text)
{
	char *rest;
	double seconds = strtod(text, &rest);

	if (rest == text || *rest || !(seconds >= 0 && seconds <= 1e6))
		usage(USAGE);
	return (int64_t)(seconds * 1e6);
}

static long whole(const char *text, long least, long most)
{
	char *rest;
	long value = strtol(text, &rest, 10);

	if (rest == text || *rest || value < least || value > most)
		usage(USAGE);
	return value;
}

/* One more question. 0: it went, or nobody answers for the address, which is a loss as any other. */
static int ask(void)
{
	unsigned checked;
	uint16_t order = all.sent;

	packet[0] = 8;
	packet[1] = packet[2] = packet[3] = 0;
	packet[4] = number >> 8;
	packet[5] = number;
	packet[6] = order >> 8;
	packet[7] = order;
	checked = sum(packet, HEADER + bytes);
	packet[2] = checked >> 8;
	packet[3] = checked;
	all.went[all.sent++ % TIMES] = now();
	if (sendto(raw, packet, HEADER + bytes, 0, (struct sockaddr *)&host, sizeof host) >= 0)
		return 0;
	if (errno != EHOSTUNREACH)
		return complain(inet_ntoa(host.sin_addr));
	if (!quiet)
		printf("no answer from the neighbour to %s\n", inet_ntoa(host.sin_addr));
	return 0;
}

/* What came: an answer to one of the last questions is counted, all else passed by. */
static void hear(const unsigned char *at, long length, const struct sockaddr_in *from)
{
	long header = length ? (at[0] & 15) * 4 : 0;
	const unsigned char *echo = at + header;
	int64_t *went, took;
	unsigned order;

	if (length < header + HEADER || sum(echo, length - header))
		return;
	if (echo[0] == 3 && length >= header + HEADER + 28) {
		/* Our own question, sent back: nobody is there. */
		const unsigned char *own = echo + HEADER;

		if (own[0] == 0x45 && own[9] == 1 && own[20] == 8 && own[24] == number >> 8 && own[25] == (number & 255)) {
			all.refused++;
			if (!quiet)
				printf("from %s: unreachable, code %d\n", inet_ntoa(from->sin_addr), echo[1]);
		}
		return;
	}
	order = echo[6] << 8 | echo[7];
	if (echo[0] != 0 || echo[4] != number >> 8 || echo[5] != (number & 255) || length != header + HEADER + bytes ||
	    from->sin_addr.s_addr != host.sin_addr.s_addr || (uint16_t)(all.sent - 1 - order) >= TIMES ||
	    (uint16_t)(all.sent - 1 - order) >= all.sent || memcmp(echo + HEADER, packet + HEADER, bytes))
		return;
	went = &all.went[(all.sent - 1 - (uint16_t)(all.sent - 1 - order)) % TIMES];
	if (!*went) {
		all.repeated++;
		return;
	}
	took = now() - *went;
	*went = 0;
	all.received++;
	all.all += took;
	all.least = took < all.least ? took : all.least;
	all.most = took > all.most ? took : all.most;
	if (!quiet)
		printf("%ld bytes from %s: number %u, hops left %d, %lld.%03lld ms\n", length - header, inet_ntoa(from->sin_addr),
		       order, at[8], (long long)took / 1000, (long long)took % 1000);
	fflush(stdout);
}

/* Hears until a time, or until every question was answered if that will do. */
static void wait_until(int64_t until, int last)
{
	static unsigned char at[2048];
	int64_t left;

	while (!ended && (left = until - now()) > 0 && !(last && all.received >= all.sent)) {
		struct pollfd one = {.fd = raw, .events = POLLIN};
		struct sockaddr_in from = {0};
		socklen_t size = sizeof from;
		long length;

		if (poll(&one, 1, (int)(left / 1000) + 1) <= 0)
			continue;
		length = recvfrom(raw, at, sizeof at, MSG_DONTWAIT, (struct sockaddr *)&from, &size);
		if (length > 0)
			hear(at, length, &from);
	}
}

static int summed(const char *name)
{
	long lost = all.sent - all.received;

	printf("%s: %ld sent, %ld received, %ld%% lost", name, all.sent, all.received, all.sent ? 100 * lost / all.sent : 0);
	if (all.repeated)
		printf(", %ld repeated", all.repeated);
	if (all.refused)
		printf(", %ld refused", all.refused);
	if (all.received)
		printf("; %lld.%03lld/%lld.%03lld/%lld.%03lld ms least/mean/most", (long long)all.least / 1000,
		       (long long)all.least % 1000, (long long)(all.all / all.received) / 1000,
		       (long long)(all.all / all.received) % 1000, (long long)all.most / 1000, (long long)all.most % 1000);
	printf("\n");
	return all.received ? finished() : 1;
}

int main(int count, char **words)
{
	int64_t interval = 1000000, patience = 2000000, due;
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM}, *found;
	int letter, error;

	tool_name = "ping";
	if (count == 2 && !strcmp(words[1], "--help")) {
		fputs(help, stdout);
		return finished();
	}
	while ((letter = getopt(count, words, "qc:i:s:W:")) != -1) {
		switch (letter) {
		case 'q':
			quiet = 1;
			break;
		case 'c':
			all.count = whole(optarg, 1, 1000000000);
			break;
		case 'i':
			interval = time_of(optarg);
			break;
		case 's':
			bytes = whole(optarg, 0, MOST);
			break;
		case 'W':
			patience = time_of(optarg);
			break;
		default:
			usage(USAGE);
		}
	}
	if (optind + 1 != count)
		usage(USAGE);
	error = getaddrinfo(words[optind], NULL, &hints, &found);
	if (error) {
		complain_words(words[optind], gai_strerror(error));
		return 2;
	}
	memcpy(&host, found->ai_addr, sizeof host);
	freeaddrinfo(found);
	raw = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
	if (raw < 0) {
		complain("socket");
		return 2;
	}
	signal(SIGINT, end);
	number = getpid();
	for (int i = 0; i < bytes; i++)
		packet[HEADER + i] = i;
	for (due = now(); !ended && all.sent != all.count; due += interval) {
		if (ask())
			return 2;
		wait_until(all.sent == all.count ? now() + patience : due + interval, all.sent == all.count);
	}
	return summed(words[optind]);
}
