/* print.h: a call with its arguments and its result, as a line of strace's. */
#ifndef PRINT_H
#define PRINT_H

#include "errors.h"
#include "kinds.h"
#include "names.h"
#include "structs.h"

static inline void put_clone(struct line *line, const unsigned long *words)
{
	unsigned long flags = words[0];
	put(line, "child_stack=");
	put_address(line, words[1]);
	put(line, ", flags=");
	put_flags(line, clone_names, flags & ~0xfful, "0");
	if (flags & 0xff) {
		put(line, "|");
		put_signal(line, flags & 0xff);
	}
	unsigned parent;
	if (flags & 0x100000 && pt_program_read(words[2], &parent, sizeof parent) == 0)
		put(line, ", parent_tid=[%u]", parent);
	if (flags & 0x80000)
		put(line, ", tls=%#lx", words[4]);
	if (flags & 0x1200000)
		put(line, ", child_tidptr=%#lx", words[3]);
}

static inline void put_clone3(struct line *line, unsigned long at)
{
	unsigned long words[8];
	if (pt_program_read(at, words, sizeof words) != 0) {
		put_address(line, at);
		return;
	}
	put(line, "{flags=");
	put_flags(line, clone_names, words[0], "0");
	if (words[0] & 0x1200000)
		put(line, ", child_tid=%#lx", words[2]);
	if (words[0] & 0x100000)
		put(line, ", parent_tid=%#lx", words[3]);
	put(line, ", exit_signal=");
	put_signal(line, words[4]);
	put(line, ", stack=");
	put_address(line, words[5]);
	put(line, ", stack_size=%#lx", words[6]);
	if (words[0] & 0x80000)
		put(line, ", tls=%#lx", words[7]);
	put_byte(line, '}');
}

static inline void put_open(struct line *line, unsigned long flags)
{
	static const char *const ways[] = {"O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE"};
	put(line, "%s", ways[flags & 3]);
	if (flags & ~3ul) {
		put_byte(line, '|');
		put_flags(line, open_names, flags & 0xfffffffc, "");
	}
}

static inline void put_with_base(struct line *line, const char *base, const struct name *names, unsigned long word)
{
	put(line, "%s", base);
	if (word) {
		put_byte(line, '|');
		put_flags(line, names, word, "");
	}
}

static inline void put_fcntl(struct line *line, unsigned long command)
{
	if (command == 1030)
		put(line, "F_DUPFD_CLOEXEC");
	else
		PUT_NAME(line, fcntl_names, command);
}

/* Whether a call has an argument of this place: some are there for some of the others. */
static inline int is_there(const struct pt_call *call, unsigned at, enum kind kind)
{
	const unsigned long *words = call->arguments;
	if (kind == FCNTL_WORD)
		return words[1] != 1 && words[1] != 3 && words[1] != 9;
	if (kind == MODE && at > 0 && (call->number == 2 || call->number == 257))
		return (words[at - 1] & 0100) != 0 || (words[at - 1] & 020200000) == 020200000;
	if (call->number == 202 && at > 2)
		return (words[1] & 0x7f) == 0 && at == 3;
	return 1;
}

/* One argument. */
static inline void put_argument(struct line *line, const struct pt_call *call, unsigned at, enum kind kind)
{
	const unsigned long *words = call->arguments;
	unsigned long word = words[at], next = at < 5 ? words[at + 1] : 0;
	int failed = call->result < 0;
	unsigned count = failed ? 0 : call->result;
	if (failed && kind >= OUT && kind <= OUT_LIST && kind != PATH && kind != TEXT && kind != IN) {
		put_address(line, word);
		return;
	}
	switch (kind) {
	case INT: case FD: put(line, "%d", (int)word); break;
	case LONG: put(line, "%ld", (long)word); break;
	case UNSIGNED: put(line, "%lu", word); break;
	case HEX: put(line, word ? "%#lx" : "0", word); break;
	case FOLDER:
		if ((int)word == -100)
			put(line, "AT_FDCWD");
		else
			put(line, "%d", (int)word);
		break;
	case MODE: put(line, "%#03lo", word & 07777); break;
	case PATH: put_string(line, word, 1); break;
	case TEXT: put_string(line, word, 0); break;
	case IN: put_buffer(line, word, next, 0); break;
	case OUT: put_buffer(line, word, count, 0); break;
	case OUT_HEX: put_buffer(line, word, count, 1); break;
	case OUT_PATH: put_string(line, word, 1); break;
	case OUT_LIST: put_list(line, word, call->result); break;
	case WORDS: put_words(line, word); break;
	case VARIABLES: put_count(line, word); break;
	case OUT_STAT: failed ? put_address(line, word) : put_stat(line, word); break;
	case OUT_STATX: failed ? put_address(line, word) : put_statx(line, word); break;
	case OUT_PAIR: {
		int pair[2];
		if (failed || pt_program_read(word, pair, sizeof pair) != 0)
			put_address(line, word);
		else
			put(line, "[%d, %d]", pair[0], pair[1]);
		break;
	}
	case OUT_STATUS: count ? put_status(line, word) : put_address(line, word); break;
	case IN_LIMIT: put_limit(line, word); break;
	case OUT_LIMIT: failed ? put_address(line, word) : put_limit(line, word); break;
	case OUT_NAMES: {
		char names[65];
		if (failed || pt_program_read(word, names, sizeof names) != 0) {
			put_address(line, word);
			break;
		}
		put(line, "{sysname=");
		put_string(line, word, 0);
		put(line, ", nodename=");
		put_string(line, word + 65, 0);
		put(line, ", ...}");
		break;
	}
	case IN_TIME: put_time(line, word, "tv_nsec"); break;
	case OUT_TIME: failed ? put_address(line, word) : put_time(line, word, "tv_nsec"); break;
	case IN_MICRO: put_time(line, word, "tv_usec"); break;
	case IN_TIMES:
		if (word == 0) {
			put(line, "NULL");
			break;
		}
		put_byte(line, '[');
		put_time(line, word, "tv_nsec");
		put(line, ", ");
		put_time(line, word + 16, "tv_nsec");
		put_byte(line, ']');
		break;
	case IN_ADDRESS: put_socket(line, word, next); break;
	case OUT_ADDRESS: {
		unsigned bytes = 0;
		if (failed || word == 0 || pt_program_read(next, &bytes, sizeof bytes) != 0)
			put_address(line, word);
		else
			put_socket(line, word, bytes);
		break;
	}
	case LENGTH: {
		unsigned bytes;
		if (word == 0 || pt_program_read(word, &bytes, sizeof bytes) != 0)
			put_address(line, word);
		else
			put(line, "[%u]", bytes);
		break;
	}
	case IN_ACTION: put_action(line, word); break;
	case OUT_ACTION: failed ? put_address(line, word) : put_action(line, word); break;
	case IN_SET: put_set(line, word); break;
	case OUT_SET: failed ? put_address(line, word) : put_set(line, word); break;
	case IN_POLL: put_polls(line, word, next); break;
	case IN_VECTOR: put_vector(line, word, next, ~0ul); break;
	case OUT_VECTOR: failed ? put_address(line, word) : put_vector(line, word, next, count); break;
	case IN_CLONE: put_clone3(line, word); break;
	case OPEN_FLAGS: put_open(line, word); break;
	case PIPE_FLAGS: put_flags(line, open_names, word, "0"); break;
	case PROTECTION: put_flags(line, protection_names, word, "PROT_NONE"); break;
	case MAP_FLAGS: {
		static const char *const ways[] = {"MAP_FILE", "MAP_SHARED", "MAP_PRIVATE", "MAP_SHARED_VALIDATE"};
		put_with_base(line, ways[word & 3], map_names, word & ~3ul);
		break;
	}
	case ACCESS: put_flags(line, access_names, word, "F_OK"); break;
	case AT_FLAGS: put_flags(line, at_names, word, "0"); break;
	case STATX_FLAGS: {
		static const char *const ways[] = {"AT_STATX_SYNC_AS_STAT", "AT_STATX_FORCE_SYNC", "AT_STATX_DONT_SYNC"};
		put_with_base(line, ways[(word >> 13 & 3) % 3], at_names, word & ~0x6000ul);
		break;
	}
	case STATX_MASK:
		put_flags(line, word == 0x7ff || word == 0xfff ? mask_names : mask_names + 1, word, "0");
		break;
	case UNLINK_FLAGS: put_flags(line, unlink_names, word, "0"); break;
	case RENAME_FLAGS: put_flags(line, rename_names, word, "0"); break;
	case WHENCE: PUT_NAME(line, whence_names, word); break;
	case SIGNAL: put_signal(line, (unsigned)word); break;
	case HOW: PUT_NAME(line, how_names, word); break;
	case RESOURCE: PUT_NAME(line, resource_names, word); break;
	case CLONE_FLAGS: put_clone(line, words); break;
	case WAIT_FLAGS: put_flags(line, wait_names, word, "0"); break;
	case FUTEX_OPERATION: {
		unsigned long operation = word & 0x7f;
		PUT_NAME(line, futex_names, operation);
		if (word & 0x80)
			put(line, "_PRIVATE");
		if (word & 0x100)
			put(line, "|FUTEX_CLOCK_REALTIME");
		break;
	}
	case CLOCK: PUT_NAME(line, clock_names, word); break;
	case TIMER_FLAGS: put_flags(line, timer_names, word, "0"); break;
	case FAMILY: PUT_NAME(line, family_names, word); break;
	case SOCKET_TYPE:
		PUT_NAME(line, type_names, word & 15);
		if (word & ~15ul) {
			put_byte(line, '|');
			put_flags(line, socket_flags, word & ~15ul, "");
		}
		break;
	case SHUT: PUT_NAME(line, shut_names, word); break;
	case MESSAGE_FLAGS: put_flags(line, message_names, word, "0"); break;
	case ADVICE: PUT_NAME(line, advice_names, word); break;
	case FILE_ADVICE: PUT_NAME(line, file_advice_names, word); break;
	case RANDOM_FLAGS: put_flags(line, random_names, word, "0"); break;
	case ARCH: {
		static const char *const all[] = {"ARCH_SET_GS", "ARCH_SET_FS", "ARCH_GET_FS", "ARCH_GET_GS"};
		PUT_NAME(line, all, word - 0x1001);
		break;
	}
	case FCNTL: put_fcntl(line, word); break;
	case FCNTL_WORD:
		if (words[1] == 2)
			put(line, word & 1 ? "FD_CLOEXEC" : "0");
		else if (words[1] == 4)
			put_open(line, word);
		else if (words[1] >= 5 && words[1] <= 7)
			put_address(line, word);
		else
			put(line, "%d", (int)word);
		break;
	case IOCTL: {
		const struct name *name = ioctl_names;
		while (name->text && name->value != (word & 0xffffffff))
			name++;
		if (name->text)
			put(line, "%s", name->text);
		else
			put(line, "%#x", (unsigned)word);
		break;
	}
	case IOCTL_WORD:
		/* The one whose word is a descriptor. */
		if ((unsigned)words[1] == 0x40049409)
			put(line, "%d", (int)word);
		else
			put_address(line, word);
		break;
	case OUT_CPUS: failed ? put_address(line, word) : put_processors(line, word, count); break;
	case EPOLL_FLAGS: put_flags(line, epoll_names, word, "0"); break;
	default: put_address(line, word); break;
	}
}

/* The call's name and arguments. */
static inline void put_call(struct line *line, const struct pt_call *call)
{
	const char *name = call_name(call->number);
	static const struct shape unknown = {{HEX, HEX, HEX, HEX, HEX, HEX}, 0, 0};
	const struct shape *shape = call->number < SHAPES ? &shapes[call->number] : &unknown;
	if (shape->kinds[0] == END && !has_none(call->number))
		shape = &unknown;
	if (name)
		put(line, "%s(", name);
	else
		put(line, "syscall_%#lx(", call->number);
	for (unsigned at = 0; at < 6 && shape->kinds[at] != END; at++)
		if (is_there(call, at, shape->kinds[at])) {
			if (at > 0)
				put(line, ", ");
			put_argument(line, call, at, shape->kinds[at]);
		}
	put_byte(line, ')');
}

/* Up to the column where results are. */
static inline void put_equals(struct line *line)
{
	enum { COLUMN = 39 };
	while (line->length < COLUMN)
		put_byte(line, ' ');
	put(line, " = ");
}

/* What came of it. */
static inline void put_result(struct line *line, const struct pt_call *call)
{
	unsigned result = call->number < SHAPES ? shapes[call->number].result : DECIMAL;
	long word = call->result;
	put_equals(line);
	if (word < 0 && word >= -4095) {
		unsigned error = -word;
		if (error < ERRORS && errors[error].name)
			put(line, "-1 %s (%s)", errors[error].name, errors[error].text);
		else
			put(line, "-1 (errno %u)", error);
		return;
	}
	switch (result) {
	case POINTER: put(line, "%#lx", (unsigned long)word); break;
	case OCTAL: put(line, "%#03lo", (unsigned long)word); break;
	case POLL_RESULT:
		put(line, "%ld", word);
		if (word > 0)
			put_polled(line, call->arguments[0], call->arguments[1]);
		else
			put(line, " (Timeout)");
		break;
	case FCNTL_RESULT:
		if (call->arguments[1] == 1) {
			put(line, word ? "%#lx (flags FD_CLOEXEC)" : "0", word);
			break;
		}
		if (call->arguments[1] == 3) {
			put(line, "%#lx (flags ", word);
			put_open(line, word);
			put_byte(line, ')');
			break;
		}
		/* fallthrough */
	default: put(line, "%ld", word); break;
	}
}

#endif
