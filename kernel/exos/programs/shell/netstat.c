/* Where this machine is, as the service `net` says; with -s what it and the kernel have counted. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <exos/net.h>

static const char *const states[] = {"no network", "asks for an address", "has an address", "conflict"};

static int counts(void)
{
	const char *name;
	uint64_t count;

	for (int i = 0; (name = exos_net_count(i, &count)); i++)
		printf("%-36s %10llu\n", name, (unsigned long long)count);
	return 0;
}

int main(int count, char **words)
{
	struct exos_network net;
	const unsigned char *a = (const unsigned char *)&net.address, *g = (const unsigned char *)&net.gateway;
	const unsigned char *h = net.hardware;

	if (count > 2 || (count == 2 && strcmp(words[1], "-s"))) {
		fputs("usage: netstat [-s]\n", stderr);
		return 2;
	}
	for (int i = 0; exos_net(&net) < 0 || net.state == 1; i++) {
		if (i == 600) {
			perror("netstat");
			return 1;
		}
		usleep(100000);
	}
	if (count == 2)
		return counts();
	printf("%s: %d.%d.%d.%d/%u, gateway %d.%d.%d.%d, %02x:%02x:%02x:%02x:%02x:%02x\n", states[net.state & 3], a[0], a[1],
	       a[2], a[3], net.bits, g[0], g[1], g[2], g[3], h[0], h[1], h[2], h[3], h[4], h[5]);
	return 0;
}
