/* structs.h: strings, buffers and structures of the program's, as strace prints them. */
#ifndef STRUCTS_H
#define STRUCTS_H

#include "flags.h"

/* Bytes of a string or a buffer that are printed (-s). */
static unsigned most = 32;

/* Bytes between quotes; in hexadecimal if so. */
static inline void put_quoted(struct line *line, const unsigned char *bytes, unsigned count, int hex)
{
	put_byte(line, '"');
	for (unsigned at = 0; at < count; at++) {
		unsigned char byte = bytes[at];
		const char *plain = "\t\n\v\f\r", *letter = "tnvfr";
		const char *found = byte ? strchr(plain, byte) : 0;
		if (hex)
			put(line, "\\x%02x", byte);
		else if (found)
			put(line, "\\%c", letter[found - plain]);
		else if (byte == '"' || byte == '\\')
			put(line, "\\%c", byte);
		else if (byte >= ' ' && byte < 127)
			put_byte(line, byte);
		else if (at + 1 < count && bytes[at + 1] >= '0' && bytes[at + 1] <= '7')
			put(line, "\\%03o", byte);
		else
			put(line, "\\%o", byte);
	}
	put_byte(line, '"');
}

static inline void put_address(struct line *line, unsigned long at)
{
	if (at == 0)
		put(line, "NULL");
	else
		put(line, "%#lx", at);
}

/* A string that ends with a zero; paths are printed as a whole. */
static inline void put_string(struct line *line, unsigned long at, int whole)
{
	char text[4096];
	unsigned room = whole ? sizeof text : most + 1 < sizeof text ? most + 1 : sizeof text;
	int length = at ? read_string(at, text, room) : -1;
	if (length < 0) {
		put_address(line, at);
		return;
	}
	unsigned shown = (unsigned)length < room ? (unsigned)length : room - 1;
	put_quoted(line, (unsigned char *)text, shown, 0);
	if ((unsigned)length == room)
		put(line, "...");
}

/* A buffer with so many bytes. */
static inline void put_buffer(struct line *line, unsigned long at, unsigned long count, int hex)
{
	unsigned char bytes[4096];
	unsigned limit = most < sizeof bytes ? most : sizeof bytes;
	unsigned shown = count < limit ? count : limit;
	if (at == 0 || pt_program_read(at, bytes, shown) != 0) {
		put_address(line, at);
		return;
	}
	put_quoted(line, bytes, shown, hex);
	if (shown < count)
		put(line, "...");
}

static inline void put_words(struct line *line, unsigned long at)
{
	put_byte(line, '[');
	for (unsigned count = 0;; count++) {
		unsigned long word;
		if (pt_program_read(at + 8 * count, &word, sizeof word) != 0 || word == 0)
			break;
		if (count)
			put(line, ", ");
		if (count == 32) {
			put(line, "...");
			break;
		}
		put_string(line, word, 0);
	}
	put_byte(line, ']');
}

static inline void put_count(struct line *line, unsigned long at)
{
	unsigned count = 0;
	unsigned long word;
	while (at && pt_program_read(at + 8ul * count, &word, sizeof word) == 0 && word)
		count++;
	put_address(line, at);
	if (at)
		put(line, " /* %u var%s */", count, count == 1 ? "" : "s");
}

static inline void put_mode(struct line *line, unsigned mode)
{
	static const char *const kinds[] = {
		[1] = "S_IFIFO", [2] = "S_IFCHR", [4] = "S_IFDIR", [6] = "S_IFBLK",
		[8] = "S_IFREG", [10] = "S_IFLNK", [12] = "S_IFSOCK",
	};
	PUT_NAME(line, kinds, mode >> 12);
	if (mode & 04000)
		put(line, "|S_ISUID");
	if (mode & 02000)
		put(line, "|S_ISGID");
	if (mode & 01000)
		put(line, "|S_ISVTX");
	put(line, "|%#03o", mode & 0777);
}

static inline void put_device(struct line *line, unsigned long major, unsigned long minor)
{
	put(line, "makedev(%#lx, %#lx)", major, minor);
}

/* `struct stat`: words 3 and 5 are mode and size, the fifth is the device. */
static inline void put_stat(struct line *line, unsigned long at)
{
	unsigned long words[18];
	if (pt_program_read(at, words, sizeof words) != 0) {
		put_address(line, at);
		return;
	}
	unsigned mode = words[3], kind = mode >> 12;
	put(line, "{st_mode=");
	put_mode(line, mode);
	if (kind == 2 || kind == 6) {
		unsigned long device = words[5];
		put(line, ", st_rdev=");
		put_device(line, device >> 8 & 0xfff, (device & 0xff) | (device >> 12 & 0xfff00));
	} else
		put(line, ", st_size=%ld", (long)words[6]);
	put(line, ", ...}");
}

static inline void put_statx(struct line *line, unsigned long at)
{
	unsigned words[64];
	if (pt_program_read(at, words, sizeof words) != 0) {
		put_address(line, at);
		return;
	}
	unsigned long size = words[10] | (unsigned long)words[11] << 32;
	unsigned long attributes = words[2] | (unsigned long)words[3] << 32;
	put(line, "{stx_mask=");
	put_flags(line, mask_names, words[0], "0");
	put(line, ", stx_attributes=%#lx, stx_mode=", attributes);
	put_mode(line, words[7] & 0xffff);
	put(line, ", stx_size=%lu, ...}", size);
}

/* `struct timespec`, or `timeval`. */
static inline void put_time(struct line *line, unsigned long at, const char *second)
{
	long words[2];
	if (at == 0 || pt_program_read(at, words, sizeof words) != 0)
		put_address(line, at);
	else
		put(line, "{tv_sec=%ld, %s=%ld}", words[0], second, words[1]);
}

static inline void put_limit_word(struct line *line, unsigned long word)
{
	if (word == ~0ul)
		put(line, "RLIM64_INFINITY");
	else if (word > 1024 && word % 1024 == 0)
		put(line, "%lu*1024", word / 1024);
	else
		put(line, "%lu", word);
}

static inline void put_limit(struct line *line, unsigned long at)
{
	unsigned long words[2];
	if (at == 0 || pt_program_read(at, words, sizeof words) != 0) {
		put_address(line, at);
		return;
	}
	put(line, "{rlim_cur=");
	put_limit_word(line, words[0]);
	put(line, ", rlim_max=");
	put_limit_word(line, words[1]);
	put_byte(line, '}');
}

/* A set of signals: those that are not in it, if these are fewer. */
static inline void put_set_word(struct line *line, unsigned long set)
{
	unsigned in = __builtin_popcountl(set);
	if (in > 42) {
		set = ~set;
		put_byte(line, '~');
	}
	put_byte(line, '[');
	const char *between = "";
	for (unsigned signal = 1; signal <= 64; signal++)
		if (set >> (signal - 1) & 1) {
			put(line, "%s", between);
			if (signal == 32)
				put(line, "RTMIN");
			else if (signal > 32)
				put(line, "RT_%u", signal - 32);
			else
				put(line, "%s", signal_names[signal] + 3);
			between = " ";
		}
	put_byte(line, ']');
}

static inline void put_set(struct line *line, unsigned long at)
{
	unsigned long set;
	if (at == 0 || pt_program_read(at, &set, sizeof set) != 0)
		put_address(line, at);
	else
		put_set_word(line, set);
}

static inline void put_action(struct line *line, unsigned long at)
{
	unsigned long words[4];
	if (at == 0 || pt_program_read(at, words, sizeof words) != 0) {
		put_address(line, at);
		return;
	}
	put(line, words[1] & 4 ? "{sa_sigaction=" : "{sa_handler=");
	if (words[0] <= 1)
		put(line, words[0] ? "SIG_IGN" : "SIG_DFL");
	else
		put(line, "%#lx", words[0]);
	put(line, ", sa_mask=");
	put_set_word(line, words[3]);
	put(line, ", sa_flags=");
	put_flags(line, action_names, words[1], "0");
	if (words[1] & 0x04000000)
		put(line, ", sa_restorer=%#lx", words[2]);
	put_byte(line, '}');
}

/* What `wait` tells of a child. */
static inline void put_status(struct line *line, unsigned long at)
{
	int status;
	if (at == 0 || pt_program_read(at, &status, sizeof status) != 0) {
		put_address(line, at);
		return;
	}
	if ((status & 0x7f) == 0)
		put(line, "[{WIFEXITED(s) && WEXITSTATUS(s) == %d}]", status >> 8 & 0xff);
	else if ((status & 0xff) == 0x7f) {
		put(line, "[{WIFSTOPPED(s) && WSTOPSIG(s) == ");
		put_signal(line, status >> 8 & 0xff);
		put(line, "}]");
	} else {
		put(line, "[{WIFSIGNALED(s) && WTERMSIG(s) == ");
		put_signal(line, status & 0x7f);
		put(line, "%s}]", status & 0x80 ? " && WCOREDUMP(s)" : "");
	}
}

static inline void put_socket(struct line *line, unsigned long at, unsigned long bytes)
{
	unsigned char given[128] = {0};
	if (bytes > sizeof given)
		bytes = sizeof given;
	if (at == 0 || bytes < 2 || pt_program_read(at, given, bytes) != 0) {
		put_address(line, at);
		return;
	}
	unsigned family = given[0] | given[1] << 8;
	unsigned port = given[2] << 8 | given[3];
	put(line, "{sa_family=");
	PUT_NAME(line, family_names, family);
	if (family == 1 && bytes > 2 && given[2] == 0) {
		put(line, ", sun_path=@");
		put_quoted(line, given + 3, bytes - 3, 0);
	} else if (family == 1 && bytes > 2) {
		unsigned length = 0;
		while (length < bytes - 2 && given[2 + length])
			length++;
		put(line, ", sun_path=");
		put_quoted(line, given + 2, length, 0);
	} else if (family == 2 && bytes >= 8)
		put(line, ", sin_port=htons(%u), sin_addr=inet_addr(\"%u.%u.%u.%u\")", port, given[4], given[5],
		    given[6], given[7]);
	else if (family == 10 && bytes >= 24) {
		put(line, ", sin6_port=htons(%u), sin6_addr=", port);
		for (unsigned at = 8; at < 24; at++)
			put(line, at % 2 || at == 8 ? "%02x" : ":%02x", given[at]);
	}
	put_byte(line, '}');
}

struct poll {
	int file;
	short wanted, came;
};

static inline void put_polls(struct line *line, unsigned long at, unsigned long count)
{
	struct poll all[16];
	unsigned shown = count < 16 ? count : 16;
	if (at == 0 || pt_program_read(at, all, shown * sizeof all[0]) != 0) {
		put_address(line, at);
		return;
	}
	put_byte(line, '[');
	for (unsigned i = 0; i < shown; i++) {
		put(line, "%s{fd=%d, events=", i ? ", " : "", all[i].file);
		put_flags(line, poll_names, (unsigned short)all[i].wanted, "0");
		put_byte(line, '}');
	}
	put(line, shown < count ? ", ...]" : "]");
}

/* Those for which something came. */
static inline void put_polled(struct line *line, unsigned long at, unsigned long count)
{
	struct poll all[16];
	unsigned shown = count < 16 ? count : 16;
	if (pt_program_read(at, all, shown * sizeof all[0]) != 0)
		return;
	const char *between = " ([";
	for (unsigned i = 0; i < shown; i++)
		if (all[i].came) {
			put(line, "%s{fd=%d, revents=", between, all[i].file);
			put_flags(line, poll_names, (unsigned short)all[i].came, "0");
			put_byte(line, '}');
			between = ", ";
		}
	put(line, "])");
}

/* Buffers, in all of which there are so many bytes. */
static inline void put_vector(struct line *line, unsigned long at, unsigned long count, unsigned long bytes)
{
	unsigned long words[32];
	unsigned shown = count < 16 ? count : 16;
	if (at == 0 || pt_program_read(at, words, 16 * shown) != 0) {
		put_address(line, at);
		return;
	}
	put_byte(line, '[');
	for (unsigned i = 0; i < shown; i++) {
		unsigned long size = words[2 * i + 1], filled = size < bytes ? size : bytes;
		put(line, "%s{iov_base=", i ? ", " : "");
		put_buffer(line, words[2 * i], filled, 0);
		put(line, ", iov_len=%lu}", size);
		bytes -= filled;
	}
	put(line, shown < count ? ", ...]" : "]");
}

/* Processors in a set of so many bytes. */
static inline void put_processors(struct line *line, unsigned long at, unsigned bytes)
{
	unsigned char set[128];
	if (bytes > sizeof set || pt_program_read(at, set, bytes) != 0) {
		put_address(line, at);
		return;
	}
	const char *between = "[";
	for (unsigned processor = 0; processor < 8 * bytes; processor++)
		if (set[processor / 8] >> processor % 8 & 1) {
			put(line, "%s%u", between, processor);
			between = " ";
		}
	put_byte(line, ']');
}

/* Entries of a folder in so many bytes. */
static inline void put_list(struct line *line, unsigned long at, long bytes)
{
	unsigned count = 0;
	unsigned short size;
	for (long done = 0; done < bytes; done += size, count++)
		if (pt_program_read(at + done + 16, &size, sizeof size) != 0 || size == 0)
			break;
	put(line, "%#lx /* %u entries */", at, count);
}

#endif
