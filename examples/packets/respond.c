/* A host in C: captures on an interface, judges packets in the ring that the kernel fills, has a handler look at them, and sends its
 * answers, until it is interrupted. With the handler of echo.c it answers pings:
 *
 *     postern cc -O2 echo.c -o echo.px
 *     cc -o respond respond.c -lpostern
 *     ./respond eth0 'icmp or udp dst port 7' echo.px
 */
#include <postern-filter.h>
#include <signal.h>
#include <stdio.h>

static volatile sig_atomic_t stop;

static void interrupted(int signal)
{
	(void)signal;
	stop = 1;
}

static int fail(void)
{
	fprintf(stderr, "%s\n", pt_error_message());
	return 2;
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: respond INTERFACE EXPRESSION HANDLER.px\n");
		return 2;
	}
	pt_source *source = pt_source_live(argv[1], 0, 0, 0);
	pt_filter *filter = source ? pt_filter_new(argv[2], NULL) : NULL;
	pt_image *image = filter ? pt_image_load(argv[3]) : NULL;
	pt_handler *handler = image ? pt_handler_new(image, argv[3], NULL) : NULL;
	if (!handler)
		return fail();
	if (pt_source_watch(source, pt_filter_domain(filter)) < 0 || pt_source_watch(source, pt_handler_domain(handler)) < 0)
		return fail();

	/* SA_ONSTACK: it may come while an extension runs, on the extension's stack. */
	struct sigaction action = { .sa_handler = interrupted, .sa_flags = SA_ONSTACK };
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);

	pt_packet packet;
	int got = 0, answers = 0;
	while (!stop && (got = pt_source_next(source, &packet)) >= 0) {
		if (got == 0 || pt_filter_run_at(filter, packet.at, packet.length, packet.wire_length) <= 0)
			continue;
		if (pt_handler_run(handler, &packet) < 0)
			fprintf(stderr, "%s\n", pt_error_message());
		const void *frame;
		size_t length;
		for (size_t i = 0; (frame = pt_handler_answer(handler, i, &length)); i++)
			answers += pt_source_send(source, &packet, frame, length) == 0;
	}
	if (got < 0)
		fprintf(stderr, "%s\n", pt_error_message());
	uint64_t received, dropped;
	pt_source_counters(source, &received, &dropped);
	fprintf(stderr, "%d packets received, %d dropped by kernel, %d answers\n", (int)received, (int)dropped, answers);
	return got < 0;
}
