#include <postern.h>
#include <stdio.h>

static int limit(void) { return 100; } /* a service: the extension may call it */

int main(int argc, char **argv)
{
	pt_options *options = pt_options_new();
	pt_options_service(options, "limit", (void *)limit, "i()");
	pt_image *image = pt_image_load(argc > 1 ? argv[1] : "add.px");
	pt_domain *domain = pt_domain_new(image, options);
	long (*add)(int, int) = PT_SYM(domain, long, add, (int, int));
	int (*at)(pt_offset) = PT_SYM(domain, int, at, (pt_offset));
	if (!add || !at)
		return fprintf(stderr, "host: %s\n", pt_error_message()), 1;
	printf("2 + 3 = %ld, 70 + 70 = %ld\n", add(2, 3), add(70, 70));
	at(0); /* a null pointer, in the extension's own memory */
	printf("%s\n", pt_fault_last()->message);
	pt_domain_reset(domain);
	printf("and on: 4 + 5 = %ld\n", add(4, 5));
	return pt_domain_free(domain);
}
