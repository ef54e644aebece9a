/* SPDX-License-Identifier: GPL-2.0 */
/* Faults of extensions. */
#ifndef POSTERN_FAULTS_H
#define POSTERN_FAULTS_H
#include <linux/types.h>

int postern_faults_init(void);
void postern_faults_exit(void);
/* From now on the instructions at `text` + each of the `count` ascending offsets may fault. The
 * caller holds the lock of loads. */
int postern_faults_add(const u8 *text, const u32 *offsets, u32 count);
/* As many, of the text that begins at `text`; nothing of it runs any more. */
void postern_faults_remove(const u8 *text, u32 count);

#endif
