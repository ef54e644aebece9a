/* flags.h: names of flags and other words of Linux's calls. */
#ifndef FLAGS_H
#define FLAGS_H

#include "line.h"

/* A word's name: the first whose bits under the mask are the value. */
struct name {
	unsigned long value;
	const char *text;
};

static const struct name access_names[] = {{4, "R_OK"}, {2, "W_OK"}, {1, "X_OK"}, {0, 0}};
static const struct name open_names[] = {
	{0100, "O_CREAT"},       {0200, "O_EXCL"},       {0400, "O_NOCTTY"},    {01000, "O_TRUNC"},
	{02000, "O_APPEND"},     {04000, "O_NONBLOCK"},  {04010000, "O_SYNC"},  {010000, "O_DSYNC"},
	{020000, "O_ASYNC"},     {040000, "O_DIRECT"},   {0100000, "O_LARGEFILE"}, {0400000, "O_NOFOLLOW"},
	{01000000, "O_NOATIME"}, {02000000, "O_CLOEXEC"}, {010000000, "O_PATH"},  {020200000, "O_TMPFILE"},
	{0200000, "O_DIRECTORY"}, {0, 0},
};
static const struct name protection_names[] = {
	{1, "PROT_READ"}, {2, "PROT_WRITE"}, {4, "PROT_EXEC"}, {0x01000000, "PROT_GROWSDOWN"}, {0, 0},
};
static const struct name map_names[] = {
	{0x10, "MAP_FIXED"},      {0x20, "MAP_ANONYMOUS"},  {0x40, "MAP_32BIT"},
	{0x4000, "MAP_NORESERVE"}, {0x8000, "MAP_POPULATE"}, {0x10000, "MAP_NONBLOCK"},
	{0x100, "MAP_GROWSDOWN"}, {0x800, "MAP_DENYWRITE"}, {0x1000, "MAP_EXECUTABLE"},
	{0x2000, "MAP_LOCKED"},   {0x20000, "MAP_STACK"},   {0x40000, "MAP_HUGETLB"},
	{0x100000, "MAP_FIXED_NOREPLACE"}, {0, 0},
};
static const struct name at_names[] = {
	{0x100, "AT_SYMLINK_NOFOLLOW"}, {0x200, "AT_EACCESS"},    {0x400, "AT_SYMLINK_FOLLOW"},
	{0x800, "AT_NO_AUTOMOUNT"},     {0x1000, "AT_EMPTY_PATH"}, {0, 0},
};
static const struct name unlink_names[] = {{0x200, "AT_REMOVEDIR"}, {0, 0}};
static const struct name rename_names[] = {
	{1, "RENAME_NOREPLACE"}, {2, "RENAME_EXCHANGE"}, {4, "RENAME_WHITEOUT"}, {0, 0},
};
static const struct name mask_names[] = {
	{0x7ff, "STATX_BASIC_STATS"}, {0x1, "STATX_TYPE"},   {0x2, "STATX_MODE"},    {0x4, "STATX_NLINK"},
	{0x8, "STATX_UID"},           {0x10, "STATX_GID"},   {0x20, "STATX_ATIME"},  {0x40, "STATX_MTIME"},
	{0x80, "STATX_CTIME"},        {0x100, "STATX_INO"},  {0x200, "STATX_SIZE"},  {0x400, "STATX_BLOCKS"},
	{0x800, "STATX_BTIME"},       {0x1000, "STATX_MNT_ID"}, {0x2000, "STATX_DIOALIGN"}, {0, 0},
};
static const struct name clone_names[] = {
	{0x100, "CLONE_VM"},           {0x200, "CLONE_FS"},           {0x400, "CLONE_FILES"},
	{0x800, "CLONE_SIGHAND"},      {0x1000, "CLONE_PIDFD"},       {0x2000, "CLONE_PTRACE"},
	{0x4000, "CLONE_VFORK"},       {0x8000, "CLONE_PARENT"},      {0x10000, "CLONE_THREAD"},
	{0x20000, "CLONE_NEWNS"},      {0x40000, "CLONE_SYSVSEM"},    {0x80000, "CLONE_SETTLS"},
	{0x100000, "CLONE_PARENT_SETTID"}, {0x200000, "CLONE_CHILD_CLEARTID"}, {0x400000, "CLONE_DETACHED"},
	{0x800000, "CLONE_UNTRACED"},  {0x1000000, "CLONE_CHILD_SETTID"}, {0x2000000, "CLONE_NEWCGROUP"},
	{0x4000000, "CLONE_NEWUTS"},   {0x8000000, "CLONE_NEWIPC"},   {0x10000000, "CLONE_NEWUSER"},
	{0x20000000, "CLONE_NEWPID"},  {0x40000000, "CLONE_NEWNET"},  {0x80000000, "CLONE_IO"},
	{0x100000000, "CLONE_CLEAR_SIGHAND"}, {0, 0},
};
static const struct name wait_names[] = {
	{1, "WNOHANG"}, {2, "WSTOPPED"}, {4, "WEXITED"}, {8, "WCONTINUED"}, {0x1000000, "WNOWAIT"}, {0, 0},
};
static const struct name action_names[] = {
	{0x04000000, "SA_RESTORER"}, {0x08000000, "SA_ONSTACK"},   {0x10000000, "SA_RESTART"},
	{0x20000000, "SA_INTERRUPT"}, {0x40000000, "SA_NODEFER"}, {0x80000000, "SA_RESETHAND"},
	{4, "SA_SIGINFO"},           {1, "SA_NOCLDSTOP"},        {2, "SA_NOCLDWAIT"}, {0, 0},
};
static const struct name poll_names[] = {
	{1, "POLLIN"}, {2, "POLLPRI"}, {4, "POLLOUT"}, {0x40, "POLLRDNORM"}, {0x80, "POLLRDBAND"},
	{0x100, "POLLWRNORM"}, {0x200, "POLLWRBAND"}, {8, "POLLERR"}, {0x10, "POLLHUP"}, {0x20, "POLLNVAL"},
	{0x2000, "POLLRDHUP"}, {0, 0},
};
static const struct name message_names[] = {
	{1, "MSG_OOB"}, {2, "MSG_PEEK"}, {0x20, "MSG_TRUNC"}, {0x40, "MSG_DONTWAIT"}, {0x80, "MSG_EOR"},
	{0x100, "MSG_WAITALL"}, {0x4000, "MSG_NOSIGNAL"}, {0x8000, "MSG_MORE"}, {0x40000000, "MSG_CMSG_CLOEXEC"}, {0, 0},
};
static const struct name random_names[] = {{1, "GRND_NONBLOCK"}, {2, "GRND_RANDOM"}, {4, "GRND_INSECURE"}, {0, 0}};
static const struct name timer_names[] = {{1, "TIMER_ABSTIME"}, {0, 0}};
static const struct name epoll_names[] = {{02000000, "EPOLL_CLOEXEC"}, {0, 0}};
static const struct name socket_flags[] = {{02000000, "SOCK_CLOEXEC"}, {04000, "SOCK_NONBLOCK"}, {0, 0}};

/* By number. */
static const char *const whence_names[] = {"SEEK_SET", "SEEK_CUR", "SEEK_END", "SEEK_DATA", "SEEK_HOLE"};
static const char *const how_names[] = {"SIG_BLOCK", "SIG_UNBLOCK", "SIG_SETMASK"};
static const char *const shut_names[] = {"SHUT_RD", "SHUT_WR", "SHUT_RDWR"};
static const char *const family_names[] = {
	[0] = "AF_UNSPEC", [1] = "AF_UNIX", [2] = "AF_INET", [10] = "AF_INET6", [16] = "AF_NETLINK", [17] = "AF_PACKET",
};
static const char *const type_names[] = {
	[1] = "SOCK_STREAM", [2] = "SOCK_DGRAM", [3] = "SOCK_RAW", [4] = "SOCK_RDM", [5] = "SOCK_SEQPACKET",
};
static const char *const resource_names[] = {
	"RLIMIT_CPU",    "RLIMIT_FSIZE",   "RLIMIT_DATA", "RLIMIT_STACK", "RLIMIT_CORE",       "RLIMIT_RSS",
	"RLIMIT_NPROC",  "RLIMIT_NOFILE",  "RLIMIT_MEMLOCK", "RLIMIT_AS", "RLIMIT_LOCKS",      "RLIMIT_SIGPENDING",
	"RLIMIT_MSGQUEUE", "RLIMIT_NICE",  "RLIMIT_RTPRIO", "RLIMIT_RTTIME",
};
static const char *const clock_names[] = {
	"CLOCK_REALTIME",        "CLOCK_MONOTONIC",        "CLOCK_PROCESS_CPUTIME_ID", "CLOCK_THREAD_CPUTIME_ID",
	"CLOCK_MONOTONIC_RAW",   "CLOCK_REALTIME_COARSE",  "CLOCK_MONOTONIC_COARSE",   "CLOCK_BOOTTIME",
};
static const char *const futex_names[] = {
	"FUTEX_WAIT",    "FUTEX_WAKE",      "FUTEX_FD",          "FUTEX_REQUEUE", "FUTEX_CMP_REQUEUE",
	"FUTEX_WAKE_OP", "FUTEX_LOCK_PI",   "FUTEX_UNLOCK_PI",   "FUTEX_TRYLOCK_PI", "FUTEX_WAIT_BITSET",
	"FUTEX_WAKE_BITSET",
};
static const char *const advice_names[] = {
	[0] = "MADV_NORMAL", [1] = "MADV_RANDOM", [2] = "MADV_SEQUENTIAL", [3] = "MADV_WILLNEED",
	[4] = "MADV_DONTNEED", [8] = "MADV_FREE", [10] = "MADV_DONTFORK", [14] = "MADV_HUGEPAGE",
	[15] = "MADV_NOHUGEPAGE", [16] = "MADV_DONTDUMP",
};
static const char *const file_advice_names[] = {
	"POSIX_FADV_NORMAL",   "POSIX_FADV_RANDOM",   "POSIX_FADV_SEQUENTIAL",
	"POSIX_FADV_WILLNEED", "POSIX_FADV_DONTNEED", "POSIX_FADV_NOREUSE",
};
static const char *const fcntl_names[] = {
	[0] = "F_DUPFD", [1] = "F_GETFD", [2] = "F_SETFD", [3] = "F_GETFL", [4] = "F_SETFL", [5] = "F_GETLK",
	[6] = "F_SETLK", [7] = "F_SETLKW", [8] = "F_SETOWN", [9] = "F_GETOWN",
};
static const char *const signal_names[] = {
	[0] = "0",        [1] = "SIGHUP",   [2] = "SIGINT",   [3] = "SIGQUIT", [4] = "SIGILL",    [5] = "SIGTRAP",
	[6] = "SIGABRT",  [7] = "SIGBUS",   [8] = "SIGFPE",   [9] = "SIGKILL", [10] = "SIGUSR1",  [11] = "SIGSEGV",
	[12] = "SIGUSR2", [13] = "SIGPIPE", [14] = "SIGALRM", [15] = "SIGTERM", [16] = "SIGSTKFLT", [17] = "SIGCHLD",
	[18] = "SIGCONT", [19] = "SIGSTOP", [20] = "SIGTSTP", [21] = "SIGTTIN", [22] = "SIGTTOU", [23] = "SIGURG",
	[24] = "SIGXCPU", [25] = "SIGXFSZ", [26] = "SIGVTALRM", [27] = "SIGPROF", [28] = "SIGWINCH", [29] = "SIGIO",
	[30] = "SIGPWR",  [31] = "SIGSYS",  [32] = "SIGRTMIN",
};
static const struct name ioctl_names[] = {
	{0x5401, "TCGETS"}, {0x5402, "TCSETS"}, {0x5403, "TCSETSW"}, {0x5404, "TCSETSF"}, {0x540f, "TIOCGPGRP"},
	{0x5410, "TIOCSPGRP"}, {0x5413, "TIOCGWINSZ"}, {0x541b, "FIONREAD"}, {0x5421, "FIONBIO"}, {0x5450, "FIONCLEX"},
	{0x5451, "FIOCLEX"}, {0x40049409, "BTRFS_IOC_CLONE or FICLONE"}, {0, 0},
};

/* Those that are set, with `none` where none is, and what has no name in hexadecimal. */
static inline void put_flags(struct line *line, const struct name *names, unsigned long word, const char *none)
{
	if (word == 0) {
		put(line, "%s", none);
		return;
	}
	const char *between = "";
	for (; names->text; names++)
		if ((word & names->value) == names->value) {
			put(line, "%s%s", between, names->text);
			word &= ~names->value;
			between = "|";
		}
	if (word)
		put(line, "%s%#lx", between, word);
}

/* The one with this number. */
static inline void put_name(struct line *line, const char *const *names, unsigned count, unsigned long word)
{
	if (word < count && names[word])
		put(line, "%s", names[word]);
	else
		put(line, "%#lx", word);
}

#define PUT_NAME(line, names, word) put_name(line, names, sizeof(names) / sizeof((names)[0]), word)

static inline void put_signal(struct line *line, unsigned long signal)
{
	if (signal > 32 && signal <= 64)
		put(line, "SIGRT_%lu", signal - 32);
	else
		PUT_NAME(line, signal_names, signal);
}

#endif
