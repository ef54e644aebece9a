/* A policy module: no odd numbers, a reason for 8, a fault for 10. */
#include <postern/policy.h>
long decide(struct postern_request *request)
{
	if (request->kind == POSTERN_SYSTEM_CALL)
		return 13;
	switch (request->integers[0]) {
	case 8:
		request->reason = "eight is too much";
		return POSTERN_KILL;
	case 10:
		__builtin_trap();
	}
	return request->integers[0] & 1 ? 1 : POSTERN_ALLOW;
}
