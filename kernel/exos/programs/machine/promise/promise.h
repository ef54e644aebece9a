/* What is on the disk for good, said in blocks of this process's own, for who reads a record of all writes. */
#ifndef PROMISE_H
#define PROMISE_H

#include <stddef.h>
#include <stdint.h>

/* Adds to what is to be said next. */
void promise_add(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A file as it is now, which is on the disk; 0, or -1. */
int promise_add_file(const char *path);
/* All files below a folder, which are on the disk. */
int promise_add_tree(const char *folder);
/* Says it: when this returns, the blocks are written. */
int promise_say(void);

/* Random operations in a folder. */
int churn(const char *folder, uint64_t seed, unsigned count);

#endif
