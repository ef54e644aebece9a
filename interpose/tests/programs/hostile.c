/* hostile.c: a program that means to do what its agent does not let it. What each try came to is
 * printed. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <netinet/in.h>
#include <unistd.h>

static long error(long result)
{
	return result < 0 ? -errno : result;
}

/* Whether a file is open that says "secret". */
static int is_secret(int file)
{
	char text[6] = {0};
	return pread(file, text, sizeof text, 0) == 6 && memcmp(text, "secret", 6) == 0;
}

/* A call from a place that is given: the `syscall` here, or one that goes on behind it. */
extern const char here[], behind[];
__attribute__((noinline)) static long call_from(const void *place, long number, long a, long b, long c)
{
	long result = number;
	register long fourth __asm__("r10") = 0;
	__asm__ volatile("jmp *%[place]\n"
	                 ".globl here, behind\n"
	                 "here: syscall\n"
	                 "behind: nop\n"
	                 : "+a"(result)
	                 : [place] "r"(place), "D"(a), "S"(b), "d"(c), "r"(fourth)
	                 : "rcx", "r11", "memory");
	return result;
}

/* The loader's own `syscall` for the place above, if there is a loader. */
static const void *way_around(void)
{
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned char wanted[16] = {0x0f, 0x05, 0xff, 0x25};
	const char *back = behind;
	memcpy(wanted + 8, &back, 8);
	const void *found = 0;
	while (!found && fgets(line, sizeof line, maps)) {
		unsigned long start, end;
		char rights[5];
		if (sscanf(line, "%lx-%lx %4s", &start, &end, rights) != 3 || start >> 40 != 0x7e || rights[2] != 'x')
			continue;
		if (rights[0] == 'r')
			found = memmem((void *)start, end - start, wanted, sizeof wanted);
	}
	fclose(maps);
	return found;
}

static void around(const char *path)
{
	call_from(here, SYS_getppid, 0, 0, 0);
	const void *place = way_around();
	long file = call_from(place ? place : here, SYS_openat, AT_FDCWD, (long)path, O_RDONLY);
	printf("%s\n", file >= 0 && is_secret(file) ? "secret" : file < 0 ? strerror(-file) : "other");
}

static char *volatile path;
static volatile int over;
static char letters[2];

static void *flip(void *unused)
{
	(void)unused;
	char *last = path + strlen(path) - 1;
	for (unsigned at = 0; !over; at++) {
		*(volatile char *)last = letters[at & 1];
		for (volatile int wait = 0; wait < (int)(at % 64); wait++)
			;
	}
	return 0;
}

/* The path's last letter changes all the time; `from` is the one that is refused. */
static void race(const char *from, char other, int tries)
{
	pthread_t thread;
	int secrets = 0, opened = 0;
	path = strdup(from);
	letters[0] = from[strlen(from) - 1];
	letters[1] = other;
	pthread_create(&thread, 0, flip, 0);
	for (int at = 0; at < tries; at++) {
		int file = open(path, O_RDONLY);
		if (file < 0)
			continue;
		opened++;
		secrets += is_secret(file);
		close(file);
	}
	over = 1;
	pthread_join(thread, 0);
	printf("secrets: %d, others: %s\n", secrets, opened > secrets ? "some" : "none");
}

static const char *link_path, *targets[2];

static void *relink(void *unused)
{
	(void)unused;
	char fresh[4096];
	snprintf(fresh, sizeof fresh, "%s.new", link_path);
	for (unsigned at = 0; !over; at++)
		if (symlink(targets[at & 1], fresh) == 0)
			rename(fresh, link_path);
	return 0;
}

/* A link leads to the one and to the other. */
static void links(const char *from, const char *to, const char *link, int tries)
{
	pthread_t thread;
	int secrets = 0;
	targets[0] = from;
	targets[1] = to;
	link_path = link;
	pthread_create(&thread, 0, relink, 0);
	for (int at = 0; at < tries; at++) {
		int file = open(link, O_RDONLY);
		if (file >= 0) {
			secrets += is_secret(file);
			close(file);
		}
	}
	over = 1;
	pthread_join(thread, 0);
	printf("secrets: %d\n", secrets);
}

static void conventions(void)
{
	long result = 20;
	__asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
	printf("int 0x80: %d\n", (int)result);
	printf("x32: %ld\n", error(syscall(0x40000000 + SYS_getpid)));
}

static void powers(void)
{
	char supervisor[64];
	snprintf(supervisor, sizeof supervisor, "/proc/%d/mem", getppid());
	printf("ptrace: %ld\n", error(ptrace(PTRACE_ATTACH, getppid(), 0, 0)));
	struct iovec piece = {supervisor, 1};
	printf("process_vm_writev: %ld\n", error(process_vm_writev(getppid(), &piece, 1, &piece, 1, 0)));
	printf("F_SETOWN: %ld\n", error(fcntl(0, F_SETOWN, getppid())));
	printf("F_SETOWN of itself: %ld\n", error(fcntl(0, F_SETOWN, getpid())));
	printf("F_SETOWN_EX: %ld\n", error(fcntl(0, F_SETOWN_EX, supervisor)));
	printf("pidfd_getfd: %ld\n", error(syscall(SYS_pidfd_getfd, 0, 0, 0)));
	printf("unshare: %ld\n", error(unshare(CLONE_NEWUSER)));
	printf("clone: %ld\n", error(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)));
	printf("clone3: %ld\n", error(syscall(SYS_clone3, 0, 0)));
	printf("setuid: %ld\n", error(setuid(1)));
	printf("chroot: %ld\n", error(chroot("/")));
	printf("mount: %ld\n", error(syscall(SYS_mount, 0, 0, 0, 0, 0)));
	printf("io_uring: %ld\n", error(syscall(SYS_io_uring_setup, 1, 0)));
	printf("bpf: %ld\n", error(syscall(SYS_bpf, 0, 0, 0)));
	printf("supervisor's memory: %ld\n", error(open(supervisor, O_RDWR)));
	supervisor[strlen(supervisor) - 4] = 0;
	int there = chdir(supervisor);
	printf("from its folder: %ld\n", there ? 1 : error(open("mem", O_RDWR)));
	printf("socket with an upper half: %ld\n", error(syscall(SYS_socket, 1ul << 32 | AF_INET, SOCK_STREAM, 0)));
	printf("own memory: %s\n", open("/proc/self/mem", O_RDWR) >= 0 ? "open" : strerror(errno));
	FILE *status = fopen("/proc/thread-self/status", "r");
	int own = 0;
	char line[256];
	while (status && fgets(line, sizeof line, status))
		own |= strncmp(line, "Tgid:", 5) == 0 && atoi(line + 5) == getpid();
	printf("own status: %d\n", own);
}

static volatile int alarms;

static void alarm_came(int signal)
{
	(void)signal;
	alarms++;
}

/* Files that must not be there yet are made while signals come: one that was made twice is there. */
static void signals(const char *folder, int tries)
{
	char name[4096];
	struct itimerval often = {{0, 200}, {0, 200}};
	struct sigaction action = {.sa_handler = alarm_came, .sa_flags = SA_RESTART};
	sigaction(SIGALRM, &action, 0);
	setitimer(ITIMER_REAL, &often, 0);
	int wrong = 0;
	/* Until signals came, too. */
	for (int at = 0; at < tries || alarms < 10; at++) {
		snprintf(name, sizeof name, "%s/%d", folder, at);
		int file = open(name, O_CREAT | O_EXCL | O_WRONLY, 0600);
		wrong += file < 0;
		close(file);
		unlink(name);
	}
	printf("wrong: %d\n", wrong);
}

/* Connects and sends to a port of this machine's, in all ways. */
static void network(int port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int stream = socket(AF_INET, SOCK_STREAM, 0), datagrams = socket(AF_INET, SOCK_DGRAM, 0);
	printf("connect: %ld\n", error(connect(stream, (void *)&to, sizeof to)));
	printf("sendto: %ld\n", error(sendto(datagrams, "x", 1, 0, (void *)&to, sizeof to)));
	struct iovec piece = {"xy", 2};
	struct mmsghdr many = {.msg_hdr = {&to, sizeof to, &piece, 1, 0, 0, 0}};
	printf("sendmsg: %ld\n", error(sendmsg(datagrams, &many.msg_hdr, 0)));
	long sent = error(sendmmsg(datagrams, &many, 1, 0));
	printf("sendmmsg: %ld %u\n", sent, sent == 1 ? many.msg_len : 0);
}

/* A local socket with a name, over which a descriptor is sent. */
static void local(const char *folder)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	snprintf(to.sun_path, sizeof to.sun_path, "%s/socket", folder);
	int server = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
	printf("bind: %ld\n", error(bind(server, (void *)&to, sizeof to)));
	printf("bind again: %ld\n", error(bind(client, (void *)&to, sizeof to)));
	listen(server, 1);
	printf("connect: %ld\n", error(connect(client, (void *)&to, sizeof to)));
	int accepted = accept(server, 0, 0);
	int pair[2];
	if (pipe(pair) != 0)
		return;
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr head;
	} control = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	memcpy(CMSG_DATA(&control.head), &pair[1], sizeof(int));
	struct iovec piece = {"x", 1};
	struct msghdr message = {0, 0, &piece, 1, &control, sizeof control, 0};
	printf("sendmsg: %ld\n", error(sendmsg(client, &message, 0)));
	char byte = 0;
	piece.iov_base = &byte;
	long got = recvmsg(accepted, &message, 0);
	int other = -1;
	memcpy(&other, CMSG_DATA(&control.head), sizeof(int));
	printf("received: %ld %c\n", got, byte);
	char through[3] = {0};
	printf("through it: %ld\n", error(write(other, "ab", 2)));
	printf("%ld %s\n", error(read(pair[0], through, 2)), through);
	unlink(to.sun_path);
}

/* A pipe with a name is opened at both ends: each waits for the other. */
static void pipes(const char *name)
{
	mkfifo(name, 0600);
	pid_t child = fork();
	if (child == 0) {
		int end = open(name, O_WRONLY);
		_exit(write(end, "z", 1) != 1);
	}
	int end = open(name, O_RDONLY), status = -1;
	char byte = 0;
	long got = read(end, &byte, 1);
	waitpid(child, &status, 0);
	printf("got: %ld %c %d\n", got, byte, status);
	unlink(name);
}

/* Says so when it has begun, waits for a line, and opens a file. */
static void left_alone(const char *name)
{
	char line[16];
	printf("ready\n");
	fflush(stdout);
	if (fgets(line, sizeof line, stdin))
		printf("opened: %ld\n", error(open(name, O_RDONLY)));
}

int main(int count, char **words)
{
	const char *what = count > 1 ? words[1] : "";
	if (strcmp(what, "around") == 0 && count == 3)
		around(words[2]);
	else if (strcmp(what, "race") == 0 && count == 5)
		race(words[2], words[3][0], atoi(words[4]));
	else if (strcmp(what, "links") == 0 && count == 6)
		links(words[2], words[3], words[4], atoi(words[5]));
	else if (strcmp(what, "conventions") == 0)
		conventions();
	else if (strcmp(what, "powers") == 0)
		powers();
	else if (strcmp(what, "signals") == 0 && count == 4)
		signals(words[2], atoi(words[3]));
	else if (strcmp(what, "network") == 0 && count == 3)
		network(atoi(words[2]));
	else if (strcmp(what, "local") == 0 && count == 3)
		local(words[2]);
	else if (strcmp(what, "pipes") == 0 && count == 3)
		pipes(words[2]);
	else if (strcmp(what, "left") == 0 && count == 3)
		left_alone(words[2]);
	else
		return 2;
	return 0;
}
