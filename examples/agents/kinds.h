/* kinds.h: how strace prints the arguments of the commonest calls: one kind for each. */
#ifndef KINDS_H
#define KINDS_H

enum kind {
	END,
	INT,      /* a number */
	LONG,     /* one of 64 bits */
	UNSIGNED, /* without a sign */
	HEX,
	ADDRESS,
	FD,
	FOLDER, /* a descriptor, or AT_FDCWD */
	MODE,   /* in octal */
	PATH,
	TEXT,      /* a string that is no path */
	IN,        /* bytes, as many as the next argument says */
	OUT,       /* bytes that the call wrote, as many as it returned */
	OUT_HEX,   /* the same, each in hexadecimal */
	OUT_PATH,  /* a string that the call wrote */
	OUT_LIST,  /* entries of a folder */
	WORDS,     /* strings in an array */
	VARIABLES, /* an array of which the length is printed */
	/* Structures that the call reads, or writes. */
	OUT_STAT,
	OUT_STATX,
	OUT_PAIR,
	OUT_STATUS,
	OUT_LIMIT,
	IN_LIMIT,
	OUT_NAMES,
	IN_TIME,
	OUT_TIME,
	IN_TIMES,
	IN_MICRO,
	IN_ADDRESS,
	OUT_ADDRESS,
	LENGTH, /* of an address: a pointer to it */
	IN_ACTION,
	OUT_ACTION,
	IN_SET,
	OUT_SET,
	IN_POLL,
	IN_VECTOR,
	OUT_VECTOR,
	IN_CLONE,
	/* Flags and names. */
	OPEN_FLAGS,
	PIPE_FLAGS,
	PROTECTION,
	MAP_FLAGS,
	ACCESS,
	AT_FLAGS,
	STATX_FLAGS,
	STATX_MASK,
	UNLINK_FLAGS,
	RENAME_FLAGS,
	WHENCE,
	SIGNAL,
	HOW,
	RESOURCE,
	CLONE_FLAGS,
	WAIT_FLAGS,
	FUTEX_OPERATION,
	CLOCK,
	TIMER_FLAGS,
	FAMILY,
	SOCKET_TYPE,
	SHUT,
	MESSAGE_FLAGS,
	ADVICE,
	FILE_ADVICE,
	RANDOM_FLAGS,
	ARCH,
	FCNTL,
	FCNTL_WORD,
	IOCTL,
	IOCTL_WORD,
	OUT_CPUS,
	EPOLL_FLAGS,
};

/* What its result is. */
enum { DECIMAL, POINTER, OCTAL, FCNTL_RESULT, POLL_RESULT };

/* Classes of calls, as -e names them; those with paths are %file, those with descriptors %desc. */
enum { FILES = 1, NETWORK = 2, PROCESS = 4, DESCRIPTORS = 8, SIGNALS = 16, MEMORY = 32 };

struct shape {
	unsigned char kinds[7];
	unsigned char result;
	unsigned char classes;
};

/* By Linux's number. A call without arguments begins with END, and others that are not here have
 * six words in hexadecimal. */
static const struct shape shapes[] = {
	[0] = {{FD, OUT, UNSIGNED}},
	[1] = {{FD, IN, UNSIGNED}},
	[2] = {{PATH, OPEN_FLAGS, MODE}},
	[3] = {{FD}},
	[4] = {{PATH, OUT_STAT}},
	[5] = {{FD, OUT_STAT}},
	[6] = {{PATH, OUT_STAT}},
	[7] = {{IN_POLL, UNSIGNED, INT}, POLL_RESULT, DESCRIPTORS},
	[8] = {{FD, LONG, WHENCE}},
	[9] = {{ADDRESS, UNSIGNED, PROTECTION, MAP_FLAGS, FD, HEX}, POINTER, MEMORY},
	[10] = {{ADDRESS, UNSIGNED, PROTECTION}, 0, MEMORY},
	[11] = {{ADDRESS, UNSIGNED}, 0, MEMORY},
	[12] = {{ADDRESS}, POINTER, MEMORY},
	[13] = {{SIGNAL, IN_ACTION, OUT_ACTION, UNSIGNED}, 0, SIGNALS},
	[14] = {{HOW, IN_SET, OUT_SET, UNSIGNED}, 0, SIGNALS},
	[16] = {{FD, IOCTL, IOCTL_WORD}},
	[17] = {{FD, OUT, UNSIGNED, LONG}},
	[18] = {{FD, IN, UNSIGNED, LONG}},
	[19] = {{FD, OUT_VECTOR, INT}},
	[20] = {{FD, IN_VECTOR, INT}},
	[21] = {{PATH, ACCESS}},
	[22] = {{OUT_PAIR}, 0, DESCRIPTORS},
	[24] = {{END}},
	[25] = {{ADDRESS, UNSIGNED, UNSIGNED, HEX, ADDRESS}, POINTER, MEMORY},
	[28] = {{ADDRESS, UNSIGNED, ADVICE}, 0, MEMORY},
	[32] = {{FD}},
	[33] = {{FD, FD}},
	[34] = {{END}, 0, SIGNALS},
	[35] = {{IN_TIME, ADDRESS}},
	[37] = {{UNSIGNED}},
	[39] = {{END}},
	[40] = {{FD, FD, ADDRESS, UNSIGNED}, 0, NETWORK},
	[41] = {{FAMILY, SOCKET_TYPE, INT}, 0, NETWORK},
	[42] = {{FD, IN_ADDRESS, INT}, 0, NETWORK},
	[43] = {{FD, OUT_ADDRESS, LENGTH}, 0, NETWORK},
	[44] = {{FD, IN, UNSIGNED, MESSAGE_FLAGS, IN_ADDRESS, INT}, 0, NETWORK},
	[45] = {{FD, OUT, UNSIGNED, MESSAGE_FLAGS, OUT_ADDRESS, LENGTH}, 0, NETWORK},
	[46] = {{FD, ADDRESS, MESSAGE_FLAGS}, 0, NETWORK},
	[47] = {{FD, ADDRESS, MESSAGE_FLAGS}, 0, NETWORK},
	[48] = {{FD, SHUT}, 0, NETWORK},
	[49] = {{FD, IN_ADDRESS, INT}, 0, NETWORK},
	[50] = {{FD, INT}, 0, NETWORK},
	[51] = {{FD, OUT_ADDRESS, LENGTH}, 0, NETWORK},
	[52] = {{FD, OUT_ADDRESS, LENGTH}, 0, NETWORK},
	[56] = {{CLONE_FLAGS}, 0, PROCESS},
	[57] = {{END}, 0, PROCESS},
	[58] = {{END}, 0, PROCESS},
	[59] = {{PATH, WORDS, VARIABLES}, 0, PROCESS},
	[60] = {{INT}, 0, PROCESS},
	[61] = {{INT, OUT_STATUS, WAIT_FLAGS, ADDRESS}, 0, PROCESS},
	[62] = {{INT, SIGNAL}, 0, SIGNALS | PROCESS},
	[63] = {{OUT_NAMES}},
	[72] = {{FD, FCNTL, FCNTL_WORD}, FCNTL_RESULT},
	[74] = {{FD}},
	[75] = {{FD}},
	[76] = {{PATH, LONG}},
	[77] = {{FD, LONG}},
	[79] = {{OUT_PATH, UNSIGNED}, 0, FILES},
	[80] = {{PATH}},
	[81] = {{FD}},
	[82] = {{PATH, PATH}},
	[83] = {{PATH, MODE}},
	[84] = {{PATH}},
	[85] = {{PATH, MODE}},
	[86] = {{PATH, PATH}},
	[87] = {{PATH}},
	[88] = {{PATH, PATH}},
	[89] = {{PATH, OUT, UNSIGNED}},
	[90] = {{PATH, MODE}},
	[91] = {{FD, MODE}},
	[92] = {{PATH, INT, INT}},
	[93] = {{FD, INT, INT}},
	[94] = {{PATH, INT, INT}},
	[95] = {{MODE}, OCTAL},
	[102] = {{END}},
	[104] = {{END}},
	[107] = {{END}},
	[108] = {{END}},
	[109] = {{INT, INT}},
	[110] = {{END}},
	[111] = {{END}},
	[112] = {{END}},
	[121] = {{INT}},
	[124] = {{INT}},
	[130] = {{IN_SET, UNSIGNED}, 0, SIGNALS},
	[131] = {{ADDRESS, ADDRESS}, 0, SIGNALS},
	[137] = {{PATH, ADDRESS}},
	[138] = {{FD, ADDRESS}},
	[158] = {{ARCH, ADDRESS}},
	[186] = {{END}},
	[191] = {{PATH, TEXT, ADDRESS, UNSIGNED}},
	[192] = {{PATH, TEXT, ADDRESS, UNSIGNED}},
	[193] = {{FD, TEXT, ADDRESS, UNSIGNED}},
	[200] = {{INT, SIGNAL}, 0, SIGNALS},
	[202] = {{ADDRESS, FUTEX_OPERATION, UNSIGNED, IN_TIME}},
	[204] = {{INT, UNSIGNED, OUT_CPUS}},
	[217] = {{FD, OUT_LIST, UNSIGNED}},
	[218] = {{ADDRESS}},
	[221] = {{FD, LONG, LONG, FILE_ADVICE}},
	[228] = {{CLOCK, OUT_TIME}},
	[229] = {{CLOCK, OUT_TIME}},
	[230] = {{CLOCK, TIMER_FLAGS, IN_TIME, ADDRESS}},
	[231] = {{INT}, 0, PROCESS},
	[232] = {{FD, ADDRESS, INT, INT}},
	[234] = {{INT, INT, SIGNAL}, 0, SIGNALS},
	[257] = {{FOLDER, PATH, OPEN_FLAGS, MODE}},
	[258] = {{FOLDER, PATH, MODE}},
	[260] = {{FOLDER, PATH, INT, INT, AT_FLAGS}},
	[262] = {{FOLDER, PATH, OUT_STAT, AT_FLAGS}},
	[263] = {{FOLDER, PATH, UNLINK_FLAGS}},
	[264] = {{FOLDER, PATH, FOLDER, PATH}},
	[265] = {{FOLDER, PATH, FOLDER, PATH, AT_FLAGS}},
	[266] = {{PATH, FOLDER, PATH}},
	[267] = {{FOLDER, PATH, OUT, UNSIGNED}},
	[268] = {{FOLDER, PATH, MODE}},
	[269] = {{FOLDER, PATH, ACCESS}},
	[273] = {{ADDRESS, UNSIGNED}},
	[280] = {{FOLDER, PATH, IN_TIMES, AT_FLAGS}},
	[291] = {{EPOLL_FLAGS}, 0, DESCRIPTORS},
	[292] = {{FD, FD, OPEN_FLAGS}},
	[293] = {{OUT_PAIR, PIPE_FLAGS}, 0, DESCRIPTORS},
	[302] = {{INT, RESOURCE, IN_LIMIT, OUT_LIMIT}},
	[316] = {{FOLDER, PATH, FOLDER, PATH, RENAME_FLAGS}},
	[318] = {{OUT_HEX, UNSIGNED, RANDOM_FLAGS}},
	[322] = {{FOLDER, PATH, WORDS, VARIABLES, AT_FLAGS}, 0, PROCESS},
	[326] = {{FD, ADDRESS, FD, ADDRESS, UNSIGNED, HEX}},
	[332] = {{FOLDER, PATH, STATX_FLAGS, STATX_MASK, OUT_STATX}},
	[334] = {{ADDRESS, HEX, INT, HEX}},
	[435] = {{IN_CLONE, UNSIGNED}, 0, PROCESS},
	[436] = {{UNSIGNED, UNSIGNED, HEX}, 0, DESCRIPTORS},
	[439] = {{FOLDER, PATH, ACCESS, AT_FLAGS}},
};

#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

/* Calls that have no arguments. */
static inline int has_none(unsigned long number)
{
	static const short none[] = {24, 34, 39, 57, 58, 102, 104, 107, 108, 110, 111, 112, 162, 186};
	for (unsigned at = 0; at < sizeof none / sizeof none[0]; at++)
		if (number == (unsigned long)none[at])
			return 1;
	return 0;
}

/* Which classes a call is of. */
static inline unsigned classes_of(unsigned long number)
{
	if (number >= SHAPES)
		return 0;
	const struct shape *shape = &shapes[number];
	unsigned classes = shape->classes;
	for (unsigned at = 0; at < 6 && shape->kinds[at] != END; at++) {
		if (shape->kinds[at] == PATH)
			classes |= FILES;
		if (shape->kinds[at] == FD || shape->kinds[at] == FOLDER)
			classes |= DESCRIPTORS;
	}
	return classes;
}

#endif
