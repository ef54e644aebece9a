/* Asks another extension, and says how that failed. */
#include <postern/extension.h>

POSTERN_IMPORT long answer(long question);

long ask(long question)
{
	long result = answer(question);
	return result ? result : -postern_peer_error();
}
