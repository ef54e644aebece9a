/* A web server: www [-lx] [-p PORT] [-c CONNECTIONS] [FOLDER]: -l a line for each request, -x plugins of clients */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <exos/web.h>

static int usage(void)
{
	fputs("usage: www [-lx] [-p PORT] [-c CONNECTIONS] [FOLDER]\n", stderr);
	return 2;
}

/* A number from 1 to most; 0 if it is none. */
static long number(const char *text, long most)
{
	char *end;
	long value = strtol(text, &end, 10);
	return end != text && !*end && value >= 1 && value <= most ? value : 0;
}

int main(int count, char **words)
{
	struct exos_web web = { .folder = "www", .port = 80, .connections = 256 };
	for (int option; (option = getopt(count, words, "lxp:c:")) != -1;) {
		switch (option) {
		case 'l':
			web.logs = 1;
			break;
		case 'x':
			web.plugins = 1;
			break;
		case 'p':
			web.port = (uint16_t)number(optarg, 65535);
			break;
		case 'c':
			web.connections = (uint32_t)number(optarg, 4096);
			break;
		default:
			return usage();
		}
	}
	if (!web.port || !web.connections || count - optind > 1)
		return usage();
	if (optind < count)
		web.folder = words[optind];
	exos_web_serve(&web);
	perror("www");
	return 1;
}
