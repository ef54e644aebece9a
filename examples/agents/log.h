/* log.h: what record.c writes of each call, and replay.c reads: a head, and behind it what the call
 * wrote into the program's memory, piece after piece. */
#ifndef LOG_H
#define LOG_H

#include "line.h"
#include "names.h"
#include "paths.h"
#include <stdlib.h>

struct head {
	unsigned number, bytes; /* the call, and bytes behind the head */
	long result;
	unsigned long given; /* a sum of the path or the bytes that the call was given */
};

/* How many bytes a call wrote to where an argument points. */
enum size { NOTHING, RESULT, FIXED, POLLS, EVENTS, VECTOR, BEHIND_LENGTH, LENGTH_ITSELF };

/* What is done about a call when it is replayed. */
enum way {
	OTHER,    /* it is no input: it is made */
	ANSWERED, /* it has what it had */
	MADE,     /* it is made, for it has a descriptor */
	TAKEN     /* it is not made, and has a descriptor in its place */
};

static const struct logged {
	unsigned char way;
	signed char path, buffer; /* which words are compared: a path, bytes with the next word's size */
	struct {
		unsigned char word, size;
		unsigned short bytes;
	} written[2];
} logged[] = {
	[0] = {ANSWERED, -1, -1, {{1, RESULT, 0}}},       /* read */
	[1] = {ANSWERED, -1, 1, {{0}}},                   /* write */
	[2] = {MADE, 0, -1, {{0}}},                       /* open */
	[4] = {ANSWERED, 0, -1, {{1, FIXED, 144}}},       /* stat */
	[5] = {ANSWERED, -1, -1, {{1, FIXED, 144}}},      /* fstat */
	[6] = {ANSWERED, 0, -1, {{1, FIXED, 144}}},       /* lstat */
	[7] = {ANSWERED, -1, -1, {{0, POLLS, 0}}},        /* poll */
	[8] = {ANSWERED, -1, -1, {{0}}},                  /* lseek */
	[17] = {ANSWERED, -1, -1, {{1, RESULT, 0}}},      /* pread64 */
	[18] = {ANSWERED, -1, 1, {{0}}},                  /* pwrite64 */
	[19] = {ANSWERED, -1, -1, {{1, VECTOR, 0}}},      /* readv */
	[20] = {ANSWERED, -1, -1, {{0}}},                 /* writev */
	[21] = {ANSWERED, 0, -1, {{0}}},                  /* access */
	[35] = {ANSWERED, -1, -1, {{0}}},                 /* nanosleep */
	[39] = {ANSWERED, -1, -1, {{0}}},                 /* getpid */
	[41] = {MADE, -1, -1, {{0}}},                     /* socket */
	[42] = {ANSWERED, -1, 1, {{0}}},                  /* connect */
	[43] = {TAKEN, -1, -1, {{1, BEHIND_LENGTH, 0}, {2, LENGTH_ITSELF, 4}}}, /* accept */
	[44] = {ANSWERED, -1, 1, {{0}}},                  /* sendto */
	[45] = {ANSWERED, -1, -1, {{1, RESULT, 0}}},      /* recvfrom */
	[48] = {ANSWERED, -1, -1, {{0}}},                 /* shutdown */
	[49] = {ANSWERED, -1, 1, {{0}}},                  /* bind */
	[50] = {ANSWERED, -1, -1, {{0}}},                 /* listen */
	[51] = {ANSWERED, -1, -1, {{1, BEHIND_LENGTH, 0}, {2, LENGTH_ITSELF, 4}}}, /* getsockname */
	[52] = {ANSWERED, -1, -1, {{1, BEHIND_LENGTH, 0}, {2, LENGTH_ITSELF, 4}}}, /* getpeername */
	[54] = {ANSWERED, -1, -1, {{0}}},                 /* setsockopt */
	[55] = {ANSWERED, -1, -1, {{3, BEHIND_LENGTH, 0}, {4, LENGTH_ITSELF, 4}}}, /* getsockopt */
	[63] = {ANSWERED, -1, -1, {{0, FIXED, 390}}},     /* uname */
	[79] = {ANSWERED, -1, -1, {{0, RESULT, 0}}},      /* getcwd */
	[89] = {ANSWERED, 0, -1, {{1, RESULT, 0}}},       /* readlink */
	[96] = {ANSWERED, -1, -1, {{0, FIXED, 16}}},      /* gettimeofday */
	[98] = {ANSWERED, -1, -1, {{1, FIXED, 144}}},     /* getrusage */
	[99] = {ANSWERED, -1, -1, {{0, FIXED, 112}}},     /* sysinfo */
	[100] = {ANSWERED, -1, -1, {{0, FIXED, 32}}},     /* times */
	[102] = {ANSWERED, -1, -1, {{0}}},                /* getuid */
	[104] = {ANSWERED, -1, -1, {{0}}},                /* getgid */
	[107] = {ANSWERED, -1, -1, {{0}}},                /* geteuid */
	[108] = {ANSWERED, -1, -1, {{0}}},                /* getegid */
	[110] = {ANSWERED, -1, -1, {{0}}},                /* getppid */
	[186] = {ANSWERED, -1, -1, {{0}}},                /* gettid */
	[201] = {ANSWERED, -1, -1, {{0, FIXED, 8}}},      /* time */
	[217] = {ANSWERED, -1, -1, {{1, RESULT, 0}}},     /* getdents64 */
	[228] = {ANSWERED, -1, -1, {{1, FIXED, 16}}},     /* clock_gettime */
	[229] = {ANSWERED, -1, -1, {{1, FIXED, 16}}},     /* clock_getres */
	[230] = {ANSWERED, -1, -1, {{0}}},                /* clock_nanosleep */
	[232] = {ANSWERED, -1, -1, {{1, EVENTS, 0}}},     /* epoll_wait */
	[233] = {ANSWERED, -1, -1, {{0}}},                /* epoll_ctl */
	[257] = {MADE, 1, -1, {{0}}},                     /* openat */
	[262] = {ANSWERED, 1, -1, {{2, FIXED, 144}}},     /* newfstatat */
	[267] = {ANSWERED, 1, -1, {{2, RESULT, 0}}},      /* readlinkat */
	[269] = {ANSWERED, 1, -1, {{0}}},                 /* faccessat */
	[271] = {ANSWERED, -1, -1, {{0, POLLS, 0}}},      /* ppoll */
	[288] = {TAKEN, -1, -1, {{1, BEHIND_LENGTH, 0}, {2, LENGTH_ITSELF, 4}}}, /* accept4 */
	[318] = {ANSWERED, -1, -1, {{0, RESULT, 0}}},     /* getrandom */
	[332] = {ANSWERED, 1, -1, {{4, FIXED, 256}}},     /* statx */
	[439] = {ANSWERED, 1, -1, {{0}}},                 /* faccessat2 */
};

/* What is done about a call, or a null pointer: nothing. */
static inline const struct logged *logged_as(const struct pt_call *call)
{
	const struct logged *how = &logged[call->number];
	return call->number < sizeof logged / sizeof logged[0] && how->way != OTHER ? how : 0;
}

/* The process of which calls are logged: the first. */
static unsigned log_process;
static char log_path[PATH_ROOM];
/* Calls so far. */
static unsigned long log_calls;

static inline long log_call(unsigned long number, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	struct pt_call call = {.number = number, .arguments = {a, b, c, d}};
	return pt_syscall(&call);
}

/* Ends the program, which the log does not fit or which it does not get on with. */
__attribute__((noreturn)) static inline void log_fail(const char *what, const char *which)
{
	struct line line = {0};
	put(&line, "log: call %lu: %s%s", log_calls, what, which);
	put_out(&line);
	exit(1);
}

static inline void log_begin(void)
{
	char path[PATH_ROOM / 2];
	log_process = pt_process();
	int length = pt_argument(0, path, sizeof path);
	if (length <= 0)
		log_fail("an argument is wanted: the log's file", "");
	/* The program may go elsewhere. */
	int start = path[0] == '/' ? 0 : path_of_folder(-100, log_path, PATH_ROOM / 2);
	if (start < 0)
		log_fail("where the program is has no path", "");
	snprintf(log_path + start, sizeof log_path - start, "%s%s", start ? "/" : "", path);
}

/* Opens the log, for one call: a descriptor would be in the program's way. */
static inline long log_open(unsigned long flags)
{
	enum { OPEN = 2 };
	long file = log_call(OPEN, pt_address(log_path), flags, 0600, 0);
	if (file < 0)
		log_fail("there is no ", log_path);
	return file;
}

static inline void log_close(long file)
{
	enum { CLOSE = 3 };
	log_call(CLOSE, file, 0, 0, 0);
}

static inline unsigned long log_sum(unsigned long sum, const char *bytes, unsigned count)
{
	for (unsigned at = 0; at < count; at++)
		sum = (sum ^ (unsigned char)bytes[at]) * 0x100000001b3;
	return sum;
}

/* The sum of what a call is given, before it is made. */
static inline unsigned long log_given(const struct pt_call *call, const struct logged *how)
{
	char bytes[PATH_ROOM];
	unsigned long sum = 0xcbf29ce484222325;
	if (how->path >= 0) {
		int length = read_string(call->arguments[(int)how->path], bytes, sizeof bytes);
		return length < 0 ? 0 : log_sum(sum, bytes, length);
	}
	if (how->buffer < 0)
		return 0;
	unsigned long from = call->arguments[(int)how->buffer], count = call->arguments[how->buffer + 1];
	while (count > 0) {
		unsigned piece = count < sizeof bytes ? count : sizeof bytes;
		if (pt_program_read(from, bytes, piece) != 0)
			return 0;
		sum = log_sum(sum, bytes, piece);
		from += piece;
		count -= piece;
	}
	return sum;
}

/* A piece of the program's memory, as the kernel takes it. */
struct piece {
	unsigned long at, bytes;
};
enum { PIECES = 17 };

/* What a call with this result wrote: how many pieces. */
static inline unsigned log_written(const struct pt_call *call, const struct logged *how, struct piece *pieces)
{
	unsigned count = 0;
	for (unsigned at = 0; at < 2 && call->result >= 0; at++) {
		unsigned long to = call->arguments[how->written[at].word], bytes = 0;
		unsigned length = 0;
		switch (how->written[at].size) {
		case RESULT: bytes = call->result; break;
		case FIXED: bytes = how->written[at].bytes; break;
		case LENGTH_ITSELF: bytes = 4; break;
		case POLLS: bytes = 8 * call->arguments[1]; break;
		case EVENTS: bytes = 12 * call->result; break;
		case BEHIND_LENGTH: {
			unsigned long behind = call->arguments[how->written[at].word + 1];
			if (behind && pt_program_read(behind, &length, sizeof length) == 0)
				bytes = length;
			break;
		}
		case VECTOR: {
			unsigned long left = call->result;
			for (unsigned i = 0; left > 0 && i < call->arguments[2] && count < PIECES - 1; i++) {
				struct piece piece;
				if (pt_program_read(to + 16 * i, &piece, sizeof piece) != 0)
					break;
				if (piece.bytes > left)
					piece.bytes = left;
				left -= piece.bytes;
				pieces[count++] = piece;
			}
			break;
		}
		default: break;
		}
		if (to && bytes)
			pieces[count++] = (struct piece){to, bytes};
	}
	return count;
}

#endif
