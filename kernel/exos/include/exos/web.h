/* The web server, as a function: files are sent from the pages in which they are. */
#ifndef EXOS_WEB_H
#define EXOS_WEB_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is served, and where. */
struct exos_web {
	const char *folder;   /* of which files */
	uint32_t connections; /* at most, 1 to 4096 */
	uint16_t port;
	uint8_t logs;    /* not 0: a line for each request */
	uint8_t plugins; /* not 0: clients may bring plugins */
};

/* Serves until a signal ends the process. -1: there is no network (ENETDOWN), the port is another's
   (EADDRINUSE), or there is no memory. */
int exos_web_serve(const struct exos_web *web);

#ifdef __cplusplus
}
#endif
#endif
