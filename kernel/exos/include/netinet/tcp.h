/* Options of TCP. */
#ifndef EXOS_NETINET_TCP_H
#define EXOS_NETINET_TCP_H

#define TCP_NODELAY 1

#endif
