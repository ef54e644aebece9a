/* The first process of a Linux that serves files by nginx, beside ExOS' web server: modules, an address,
   and nginx in the foreground. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <net/route.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const modules[] = {
	"virtio", "virtio_ring", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "failover", "net_failover", "virtio_net",
};

static int fail(const char *what)
{
	perror(what);
	sleep(1);
	return 1;
}

static void set(struct sockaddr *to, const char *address)
{
	struct sockaddr_in own = { .sin_family = AF_INET };

	inet_aton(address, &own.sin_addr);
	memcpy(to, &own, sizeof own);
}

static int configure(const char *name)
{
	int with = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq request = { 0 };

	strcpy(request.ifr_name, name);
	set(&request.ifr_addr, !strcmp(name, "lo") ? "127.0.0.1" : "10.0.2.15");
	if (ioctl(with, SIOCSIFADDR, &request) < 0)
		return -1;
	set(&request.ifr_netmask, "255.255.255.0");
	if (ioctl(with, SIOCSIFNETMASK, &request) < 0)
		return -1;
	request.ifr_flags = IFF_UP | IFF_RUNNING;
	return ioctl(with, SIOCSIFFLAGS, &request);
}

int main(void)
{
	if (getpid() != 1)
		return fputs("this is the first process of a machine\n", stderr), 2;
	mount("none", "/proc", "proc", 0, NULL);
	mount("none", "/sys", "sysfs", 0, NULL);
	mount("none", "/dev", "devtmpfs", 0, NULL);
	for (size_t index = 0; index < sizeof modules / sizeof *modules; index++) {
		char path[64];
		snprintf(path, sizeof path, "/modules/%s.ko", modules[index]);
		int file = open(path, O_RDONLY);
		/* Some are part of newer kernels. */
		if (file >= 0 && syscall(SYS_finit_module, file, "", 0) < 0)
			return fail(path);
		close(file);
	}
	for (int tries = 0; configure("eth0") < 0; tries++) {
		if (tries == 50)
			return fail("eth0");
		usleep(100000);
	}
	configure("lo");
	puts("serving");
	fflush(stdout);
	execl("/usr/sbin/nginx", "nginx", "-c", "/nginx.conf", NULL);
	return fail("nginx");
}
