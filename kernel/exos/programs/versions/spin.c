/* Says that it runs, and does until somebody ends it; reads nothing. */
#include <unistd.h>

int main(void)
{
	write(STDERR_FILENO, "spins\n", 6);
	for (;;)
		continue;
}
