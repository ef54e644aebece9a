/* Answers another extension: no answer to 13. */
#include <postern/extension.h>

long answer(long question)
{
	if (question == 13)
		__builtin_trap();
	while (question == 14)
		__asm__ volatile("");
	if (question == 15)
		__postern_exit(3);
	return 2 * question;
}

double other(double x)
{
	return x;
}
