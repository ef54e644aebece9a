/* Answers with what a program would be told: its variables. */
#include "module.h"

POSTERN_EXPORT int handle(const struct request *r)
{
	struct writer w = {r->outbox, 0};
	static const struct text names[] = {TEXT("SERVER_SOFTWARE"), TEXT("GATEWAY_INTERFACE"), TEXT("DOCUMENT_ROOT"), TEXT("SITE")};
	char all[1024];
	struct writer a = {all, 0};
	for (int k = 0; k < 4; k++) {
		add(&a, names[k]);
		add(&a, TEXT("="));
		add(&a, variable(r, names[k]));
		add(&a, TEXT("\n"));
	}
	add(&w, (struct text){all, a.size});
	server_put(BODY, 0, (unsigned)w.size);
	return DONE;
}
