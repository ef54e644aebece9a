/* The service `net`. */
#include <stdio.h>

#include <exos/net.h>

int main(void)
{
	exos_net_serve();
	perror("netd");
	return 1;
}
