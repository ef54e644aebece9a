/* Table 11: a counter in a frame of 60 bytes goes to and fro between this machine and a peer, over UDP. The
 * peer answers on its own clock, so what counts is what was executed meanwhile, which the emulator
 * knows. */
#include "measure.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netpacket/packet.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define ROUNDS 64
#define MEASUREMENTS 20
#define OWN_ADDRESS "10.0.0.2"
#define PEER_ADDRESS "10.0.0.1"
#define PEER_STATION { 0x52, 0x54, 0, 0, 0, 2 }
/* What the peer is asked by frames of this type: kernel/aegis/machine/src/peer.rs. */
#define COMMANDS 0x88b5
#define ROUNDS_ASKED 4

static void load(const char *name)
{
	char path[64];
	int file;

	snprintf(path, sizeof path, "/modules/%s.ko", name);
	file = open(path, O_RDONLY);
	/* Some are part of newer kernels. */
	if (file < 0)
		return;
	if (syscall(SYS_finit_module, file, "", 0))
		fail(path);
	close(file);
}

static struct sockaddr_in internet(const char *address, int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_aton(address, &to.sin_addr);
	return to;
}

/* The interface has an address, and knows the peer's. */
static void configure(int socket)
{
	struct ifreq request = { .ifr_name = "eth0" };
	struct arpreq peer = { .arp_flags = ATF_COM | ATF_PERM, .arp_dev = "eth0" };
	struct sockaddr_in own = internet(OWN_ADDRESS, 0), mask = internet("255.255.255.0", 0), other = internet(PEER_ADDRESS, 0);
	static const unsigned char station[] = PEER_STATION;

	memcpy(&request.ifr_addr, &own, sizeof own);
	if (ioctl(socket, SIOCSIFADDR, &request))
		fail("the interface's address");
	memcpy(&request.ifr_netmask, &mask, sizeof mask);
	if (ioctl(socket, SIOCSIFNETMASK, &request))
		fail("the interface's mask");
	request.ifr_flags = IFF_UP | IFF_RUNNING;
	if (ioctl(socket, SIOCSIFFLAGS, &request))
		fail("the interface");
	/* Frames are dropped until the kernel has seen that there is a link. */
	do {
		usleep(1000);
		if (ioctl(socket, SIOCGIFFLAGS, &request))
			fail("the link");
	} while (!(request.ifr_flags & IFF_RUNNING));
	memcpy(&peer.arp_pa, &other, sizeof other);
	peer.arp_ha.sa_family = ARPHRD_ETHER;
	memcpy(peer.arp_ha.sa_data, station, sizeof station);
	if (ioctl(socket, SIOCSARP, &peer))
		fail("the peer's address");
}

/* Has the peer begin with so many rounds. */
static void begin(int raw, uint64_t rounds)
{
	static const unsigned char station[] = PEER_STATION;
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_protocol = htons(COMMANDS), .sll_ifindex = (int)if_nametoindex("eth0"), .sll_halen = 6 };
	unsigned char command[46] = { 0 };
	uint64_t words[2] = { ROUNDS_ASKED, rounds };

	memcpy(command + 2, words, sizeof words);
	memcpy(to.sll_addr, station, sizeof station);
	if (sendto(raw, command, sizeof command, 0, (struct sockaddr *)&to, sizeof to) < 0)
		fail("a command to the peer");
}

/* Sends a message back, its counter one higher. */
static void answer(int socket)
{
	struct sockaddr_in from;
	socklen_t size = sizeof from;
	struct {
		uint64_t counter;
		char rest[10];
	} __attribute__((packed)) message;

	if (recvfrom(socket, &message, sizeof message, 0, (struct sockaddr *)&from, &size) != sizeof message)
		fail("a message");
	message.counter = __builtin_bswap64(__builtin_bswap64(message.counter) + 1);
	if (sendto(socket, &message, sizeof message, 0, (struct sockaddr *)&from, size) != sizeof message)
		fail("an answer");
}

void network(void)
{
	struct sockaddr_in own = internet("0.0.0.0", 7);
	int messages, raw;

	for (const char *const *name = (const char *[]){ "virtio", "virtio_ring", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "failover", "net_failover", "virtio_net", NULL }; *name; name++)
		load(*name);
	messages = socket(AF_INET, SOCK_DGRAM, 0);
	raw = socket(AF_PACKET, SOCK_DGRAM, htons(COMMANDS));
	if (messages < 0 || raw < 0 || bind(messages, (struct sockaddr *)&own, sizeof own))
		fail("sockets");
	configure(messages);
	/* What the kernel does by itself after a boot is over. */
	sleep(3);
	for (int measurement = 0; measurement < MEASUREMENTS; measurement++) {
		begin(raw, ROUNDS + 1);
		answer(messages);
		MARK(BEGIN);
		for (int round = 0; round < ROUNDS; round++)
			answer(messages);
		MARK(END);
	}
	MARK(ROW);
	printf("figure round-trip busy %u\n", ROUNDS);
	fflush(stdout);
}
