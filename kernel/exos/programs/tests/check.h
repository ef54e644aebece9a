/* What tests say of themselves. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <stdio.h>

static int failures;

#define CHECK(condition)                                                                                      \
	do {                                                                                                  \
		if (!(condition)) {                                                                           \
			printf("FAILED %s: line %d: %s (errno %d)\n", __func__, __LINE__, #condition, errno); \
			failures++;                                                                           \
			return;                                                                               \
		}                                                                                             \
	} while (0)

#define RUN(test)                                 \
	do {                                      \
		int before_ = failures;           \
		test();                           \
		if (failures == before_)          \
			printf("ok %s\n", #test); \
		fflush(stdout);                   \
	} while (0)
#endif
