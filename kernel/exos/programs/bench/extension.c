/* Calls of extensions: through the gates and back, with a service inside, with a fault and a reset. Linux' gates are the same
   instructions, and are measured by `postern bench`. */
#include "measure.h"

#ifdef __exos__
#include <exos/extension.h>

static void host_nothing(void) {}

int main(void)
{
	pt_image *image = pt_image_load("empty.px");
	pt_options *options = pt_options_new();
	uint64_t took;

	pt_options_service(options, "host_nothing", (void *)host_nothing, "v()");
	pt_domain *domain = image ? pt_domain_new(image, options) : NULL;
	if (!domain) {
		fprintf(stderr, "empty.px: %s\n", pt_error_message());
		return 1;
	}
	void (*nothing)(void) = PT_SYM(domain, void, "v()", nothing, (void));
	void (*serve)(void) = PT_SYM(domain, void, "v()", serve, (void));
	int (*fault)(void) = PT_SYM(domain, int, "i()", fault, (void));

	LEAST(took, TRIES, nothing());
	row("extension-call", took, 1);
	LEAST(took, TRIES, serve());
	row("extension-service", took, 1);
	LEAST(took, TRIES, fault(); pt_domain_reset(domain));
	row("extension-fault", took, 1);
	return pt_fault_last() ? 0 : 1;
}
#else
int main(void)
{
	return 0;
}
#endif
