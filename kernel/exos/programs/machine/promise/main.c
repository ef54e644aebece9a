/* promise begin PATH... | promise tree | promise churn FOLDER SEED COUNT: tells a record of the disk's writes
   what may change from now on; that all files are on the disk; works in a folder and says of each file. */
#include "promise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **words)
{
	int result = 2;
	if (count > 2 && !strcmp(words[1], "begin")) {
		for (int word = 2; word < count; word++)
			promise_add("begin %s\n", words[word]);
		result = promise_say();
	} else if (count == 2 && !strcmp(words[1], "tree")) {
		sync();
		result = promise_add_tree("") | promise_say();
	} else if (count == 5 && !strcmp(words[1], "churn")) {
		result = churn(words[2], strtoull(words[3], NULL, 10), strtoul(words[4], NULL, 10));
	} else {
		fputs("usage: promise begin PATH... | tree | churn FOLDER SEED COUNT\n", stderr);
	}
	if (result == -1)
		perror("promise");
	return result ? 1 : 0;
}
