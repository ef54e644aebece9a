/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* The device /dev/postern: what a process asks, and what the module answers.
 *
 * All calls need CAP_SYS_ADMIN. Names are strings of at most POSTERN_NAME bytes with their NUL.
 * Fields named `reserved` and bits of flags that have no name here are 0, or the call fails with
 * EINVAL. Reading the device lists the extensions that are loaded, one a line: number, name,
 * instructions, deepest nesting of calls, longest path (0 where there are loops), calls. */
#ifndef POSTERN_LINUX_H
#define POSTERN_LINUX_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define POSTERN_NAME 64

/* Values of `verdict`. */
#define POSTERN_ACCEPTED 0
#define POSTERN_NO_IMAGE 1 /* rule: what is wrong with the file */
#define POSTERN_REFUSED 2 /* rule: the verifier's rule that the code breaks */
#define POSTERN_EXPORT_MISPLACED 3 /* an export is no start of an instruction */
#define POSTERN_OUT_OF_MEMORY 4 /* there was no memory to judge it */
#define POSTERN_NO_SERVICE 5 /* at: index of an import that no service has, or none for these rights */

/* Values of `place`: what `at` is. */
#define POSTERN_PLACE_FILE 0
#define POSTERN_PLACE_ELF_HEADER 1
#define POSTERN_PLACE_PROGRAM_HEADER 2 /* index */
#define POSTERN_PLACE_NOTE 3 /* offset in the file */
#define POSTERN_PLACE_IMPORT 4 /* index */
#define POSTERN_PLACE_EXPORT 5 /* index */
#define POSTERN_PLACE_TEXT 6 /* offset in the window */

/* What the judge says. */
struct postern_verdict {
	__u32 verdict;
	__u32 rule;
	__u32 place;
	__u32 depth; /* accepted: how deep calls nest at most */
	__u64 at;
	__u32 instructions;
	__u32 longest_path; /* in instructions; 0 where there are loops */
};

/* Rights of an extension: bits of `rights`. What needs none any extension may do. */
#define POSTERN_MAY_SEE_PACKETS 1 /* bytes of the packet that a hook is about */
#define POSTERN_MAY_CHANGE_PACKETS 2
#define POSTERN_MAY_OBSERVE 4 /* memory of the kernel, read; registers at probes */
#define POSTERN_MAY_LOG 8

/* What becomes of an extension that faulted or took too long: `on_fault`. */
#define POSTERN_FAULT_KEEPS 0 /* it goes on as it was left */
#define POSTERN_FAULT_RESTARTS 1 /* its memory is made anew before the next call */
#define POSTERN_FAULT_ENDS 2 /* it is called no more, and leaves its hooks */

/* Bits of `flags`. */
#define POSTERN_ONE_WINDOW 1 /* one window for all processors: a call while it is in use is skipped */

/* Loads an extension. The call succeeds if the image was judged; `id` is 0 if it was not accepted. */
struct postern_load {
	__u64 file; /* address of its bytes */
	__u64 size; /* at most POSTERN_MOST bytes */
	char name[POSTERN_NAME];
	__u32 segment; /* the extension whose windows it shares, with their stack; 0: it has its own */
	__u32 rights;
	__u32 on_fault;
	__u32 flags;
	__u32 heap; /* bytes of heap in each window */
	__u32 limit; /* milliseconds that a call may take; 0: the module's parameter `limit` */
	__u32 shared; /* offset in the window of the shared area, a page's; 0: there is none */
	__u32 shared_size; /* bytes of it, whole pages of data or bss */
	__u32 id;
	__u32 reserved;
	struct postern_verdict verdict;
};

/* How a call ended: `kind`. */
#define POSTERN_RETURNED 0
#define POSTERN_PAGE_FAULT 1 /* it touched what is not mapped so: `address` */
#define POSTERN_DIVISION 2
#define POSTERN_TRAP 3 /* an instruction that ends it: ud2, int3 */
#define POSTERN_TIMEOUT 4
#define POSTERN_BAD_ARGUMENT 5 /* a service was given what it does not take: `service` */
#define POSTERN_SKIPPED 6 /* its window was in use */
#define POSTERN_ENDED 7 /* it faulted before, and is called no more */
#define POSTERN_ABSENT 8 /* it has no function of this name: no action */
#define POSTERN_UNSUITABLE 9 /* interrupts are off here, and it may loop */
#define POSTERN_KINDS 10

struct postern_outcome {
	__u32 kind;
	__u32 offset; /* of the instruction, in the window; where a service was called, of its slot */
	__u32 address; /* offset in the window of what it touched, where that is known */
	__u32 service; /* index of the import */
};

/* Calls a function of an extension. */
struct postern_call {
	__u32 id;
	__u32 queued; /* 1: asked for, not waited for; EBUSY while too many are not done */
	char function[POSTERN_NAME];
	__u64 arguments[6];
	__u64 value; /* if it returned */
	struct postern_outcome outcome;
};

/* What is known of an extension. */
struct postern_statistics {
	__u32 id;
	__u32 on_fault;
	__u32 rights;
	__u32 segment;
	char name[POSTERN_NAME];
	__u64 size; /* bytes of its image */
	__u64 memory; /* bytes of all its windows that are present */
	struct postern_verdict verdict;
	__u64 ended[POSTERN_KINDS]; /* calls by how they ended */
	__u64 queued; /* requests that are not done yet */
	__u64 lost; /* entries that its ring buffer had no room for */
	__u64 log_left_out;
	__u64 restarts;
	struct postern_outcome last; /* the last that did not return, of any processor */
	__u32 hooks; /* how many it is attached to */
	__u32 shared_size; /* bytes of its shared area; 0: it has none */
};

/* Hooks: `hook`. */
#define POSTERN_NETFILTER 1 /* number: hook number; family, priority */
#define POSTERN_TRACEPOINT 2 /* target: its name */
#define POSTERN_KPROBE 3 /* target: a symbol; number: offset */
#define POSTERN_TIMER 4 /* number: period in microseconds */

/* Has a function called at a hook.
 *
 * netfilter: long f(const unsigned char *packet, size_t captured, size_t length, long hook): 0 drops
 * the packet, any other value lets it pass. `captured` bytes from the network header on are in the
 * window; services reach the others.
 * tracepoint, kprobe: long f(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f): the event's arguments, the
 * function's; what it returns is counted if it is not 0.
 * timer: long f(u64 nanoseconds): 0 stops the timer. */
struct postern_attach {
	__u32 id;
	__u32 hook;
	char function[POSTERN_NAME];
	char target[POSTERN_NAME];
	__u32 number;
	__s32 priority;
	__u32 family; /* NFPROTO_IPV4, NFPROTO_IPV6, NFPROTO_INET */
	__u32 capture; /* bytes of a packet that are copied into the window, at most 4096; 0: 256 */
	__u32 otherwise; /* netfilter: 1 lets packets pass whose call did not return, 0 drops them */
	__u32 attachment; /* its number, for POSTERN_DETACH */
	__u32 reserved[2];
};

/* What is known of an attachment; `attachment` is given, or asked for as the next above it. */
struct postern_attachment {
	__u32 attachment;
	__u32 next; /* 1: the first whose number is larger than `attachment` */
	__u64 calls;
	__u64 passed; /* calls whose value was not 0 */
	struct postern_attach how;
};

/* Maps: each extension may have up to POSTERN_MAPS, by number; user space makes them, or a function
 * of the extension finds none. Keys and values are bytes of fixed sizes. */
#define POSTERN_MAPS 16
struct postern_map {
	__u32 id;
	__u32 map;
	__u32 key_size; /* 1 to 64 bytes */
	__u32 value_size; /* 1 to 4096 bytes */
	__u32 entries; /* at most, up to 1 << 20 */
	__u32 reserved;
};

#define POSTERN_MAP_GET 0
#define POSTERN_MAP_SET 1
#define POSTERN_MAP_REMOVE 2
#define POSTERN_MAP_NEXT 3 /* the key behind `key` in some order, and its value; with key 0: the first */
struct postern_map_access {
	__u32 id;
	__u32 map;
	__u32 operation;
	__u32 reserved;
	__u64 key; /* addresses */
	__u64 value;
	__u64 next_key;
};

/* Opens an extension by its number: the call's value is a descriptor. Mapped from offset 0 it is the
 * shared area, which all windows of the extension have at the same place. Read, it gives entries of
 * the ring buffer, whole ones: each a __u32 with the bytes that follow it, then these, padded to 8.
 * poll says when there are any. */

/* Judges code alone, as the text of an image with so many imports. Nothing is loaded. */
struct postern_text {
	__u64 text;
	__u32 size;
	__u32 imports;
	struct postern_verdict verdict;
};

/* Bytes of the largest file or text. */
#define POSTERN_MOST (4 << 20)

#define POSTERN_LOAD _IOWR('P', 1, struct postern_load)
#define POSTERN_UNLOAD _IOW('P', 2, __u32)
#define POSTERN_JUDGE_TEXT _IOWR('P', 3, struct postern_text)
#define POSTERN_CALL _IOWR('P', 4, struct postern_call)
#define POSTERN_STATISTICS _IOWR('P', 5, struct postern_statistics)
#define POSTERN_ATTACH _IOWR('P', 6, struct postern_attach)
#define POSTERN_DETACH _IOW('P', 7, __u32)
#define POSTERN_ATTACHMENT _IOWR('P', 8, struct postern_attachment)
#define POSTERN_MAP_MAKE _IOW('P', 9, struct postern_map)
#define POSTERN_MAP_ACCESS _IOWR('P', 10, struct postern_map_access)
#define POSTERN_OPEN _IOW('P', 11, __u32)
/* Puts another image in an extension's place, under its number: its hooks, maps and ring stay. `id`
 * is given. The image must have the functions that are attached. */
#define POSTERN_REPLACE _IOWR('P', 12, struct postern_load)
/* Tells the sizes of a map, of which `id` and `map` are given. */
#define POSTERN_MAP_SIZES _IOWR('P', 13, struct postern_map)

#endif
