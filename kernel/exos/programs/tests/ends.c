/* What a process had is free when its parent has waited for it: the next one gets as much. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 1 << 18, TIMES = 3 };

/* Blocks that a child gets, all touched. */
static int blocks(void)
{
	int count = 0;
	char *block;

	while (count < 250 && (block = malloc(BLOCK))) {
		memset(block, 1, BLOCK);
		count++;
	}
	return count;
}

int main(void)
{
	int first = 0;

	for (int turn = 0; turn < TIMES; turn++) {
		int status;
		pid_t child = fork();

		if (child == 0)
			_exit(blocks());
		if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
			printf("FAILED ends: turn %d\n", turn);
			return 1;
		}
		if (turn == 0)
			first = WEXITSTATUS(status);
		if (first < 64 || WEXITSTATUS(status) < first - 4) {
			printf("FAILED ends: %d blocks, then %d\n", first, WEXITSTATUS(status));
			return 1;
		}
	}
	puts("ok ends");
	return 0;
}
