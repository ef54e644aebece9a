/* Files in memory: a cached file of a page is opened, read and closed, and one of 10 MB is copied. Linux has them in tmpfs, ExOS in
   another process. */
#include "measure.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __exos__
#include <exos/files.h>
#include <exos/service.h>
#endif

enum { LONG = 10 << 20, PIECE = 16384 };

static char bytes[PIECE] ALIGNED;

static void reads(void)
{
	int file = open("/tmp/page", O_RDONLY);

	if (read(file, bytes, PAGE) != PAGE || close(file))
		fail("/tmp/page");
}

static void copies(void)
{
	int from = open("/tmp/long", O_RDONLY), to = open("/tmp/copy", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	ssize_t length;

	while ((length = read(from, bytes, PIECE)) > 0)
		if (write(to, bytes, length) != length)
			fail("/tmp/copy");
	if (length || close(from) || close(to))
		fail("/tmp/long");
}

static void makes(const char *name, long length)
{
	int file = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	memset(bytes, 'b', PIECE);
	for (long done = 0; done < length; done += length < PIECE ? length : PIECE)
		if (write(file, bytes, length < PIECE ? length : PIECE) < 0)
			fail(name);
	if (file < 0 || close(file))
		fail(name);
}

int main(void)
{
	uint64_t took;

#ifdef __exos__
	struct exos_service found;
	pid_t server = fork();
	if (server == 0) {
		exos_files_in_memory("/tmp", 8192);
		fail("/tmp");
	}
	while (exos_service("/tmp", &found))
		usleep(1000);
#endif
	makes("/tmp/page", PAGE);
	LEAST(took, TRIES, reads());
	row("open-read", took, 1);
	makes("/tmp/long", LONG);
	LEAST(took, 3, copies());
	row("copy-10mb", took, 1);
#ifdef __exos__
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
#endif
	return 0;
}
