/* Figure 3, where instructions are the clock: what the demonstration says. */
#include "measure.h"

#ifdef __exos__
#include "../demo/figure3.c"
#else
int main(void)
{
	return 0;
}
#endif
