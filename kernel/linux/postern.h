/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* The device /dev/postern: what a process asks, and what the module answers.
 *
 * All calls need CAP_SYS_ADMIN. Reading the device lists the images that are loaded, one a line:
 * number, size of the file in bytes, instructions, deepest nesting of calls, longest path (0 where
 * there are loops). */
#ifndef POSTERN_LINUX_H
#define POSTERN_LINUX_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Values of `verdict`. */
#define POSTERN_ACCEPTED 0
#define POSTERN_NO_IMAGE 1 /* rule: what is wrong with the file */
#define POSTERN_REFUSED 2 /* rule: the verifier's rule that the code breaks */
#define POSTERN_EXPORT_MISPLACED 3 /* an export is no start of an instruction */
#define POSTERN_OUT_OF_MEMORY 4 /* there was no memory to judge it */

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

/* Loads an image. The call succeeds if it was judged; `id` is 0 if it was not accepted. */
struct postern_load {
	__u64 file; /* address of its bytes */
	__u64 size; /* at most POSTERN_MOST bytes */
	struct postern_verdict verdict;
	__u32 id;
	__u32 reserved; /* 0 */
};

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

#endif
