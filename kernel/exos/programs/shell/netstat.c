/* Where this machine is, as the service `net` says. */
#include <stdio.h>
#include <unistd.h>

#include <exos/net.h>

static const char *const states[] = {"no network", "asks for an address", "has an address", "conflict"};

int main(void)
{
	struct exos_network net;
	const unsigned char *a = (const unsigned char *)&net.address, *g = (const unsigned char *)&net.gateway;
	const unsigned char *h = net.hardware;

	for (int i = 0; exos_net(&net) < 0 || net.state == 1; i++) {
		if (i == 600) {
			perror("netstat");
			return 1;
		}
		usleep(100000);
	}
	printf("%s: %d.%d.%d.%d/%u, gateway %d.%d.%d.%d, %02x:%02x:%02x:%02x:%02x:%02x\n", states[net.state & 3], a[0], a[1],
	       a[2], a[3], net.bits, g[0], g[1], g[2], g[3], h[0], h[1], h[2], h[3], h[4], h[5]);
	return 0;
}
