/* Until the library has the folder that a process is in. */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

__attribute__((weak)) char *getcwd(char *to, size_t room)
{
	return room > 1 ? strcpy(to, "/") : NULL;
}

__attribute__((weak)) int chdir(const char *to)
{
	errno = strcmp(to, "/") ? ENOENT : 0;
	return errno ? -1 : 0;
}
