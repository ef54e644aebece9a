/* Extensions inside a process: native code of others, called like functions. What one does wrong ends its own call, and nothing else. */
#include <exos/extension.h>
#include <stdio.h>

static pt_domain *domain;

/* What the extension may call. Its pointers are offsets in its window: nothing is read there but by pt_domain_read. */
static int host_say(pt_offset text)
{
    char line[64] = "";
    for (unsigned i = 0; i < sizeof line - 1 && !pt_domain_read(domain, text + i, &line[i], 1) && line[i]; i++)
        ;
    return printf("the extension says: %s\n", line);
}

static void ended(const char *what)
{
    const pt_fault *fault = pt_fault_last();
    printf("%s: %s\n", what, fault ? fault->message : "it returned");
    pt_fault_clear();
}

int main(void)
{
    pt_image *image = pt_image_load("guest.px");
    pt_options *options = pt_options_new();
    pt_options_service(options, "host_say", (void *)host_say, "i(I)");
    pt_options_deadline(options, 20000);
    pt_domain *beside = image ? pt_domain_new(image, options) : NULL;
    domain = beside ? pt_domain_new(image, options) : NULL;
    if (!domain) {
        fprintf(stderr, "guest.px: %s\n", pt_error_message());
        return 1;
    }
    PT_SYM(domain, int, "i(i)", greet, (int))(2);
    int (*next)(void) = PT_SYM(domain, int, "i()", next, (void));
    int (*others)(void) = PT_SYM(beside, int, "i()", next, (void));
    next();
    printf("next() twice: %d; in another domain: %d\n", next(), others());
    PT_SYM(domain, int, "i(I)", read_at, (unsigned))(0xf0000000);
    ended("it reads outside its memory");
    next();
    ended("it is called once more");
    pt_domain_reset(domain);
    printf("next() after a reset %d\n", next());
    PT_SYM(domain, void, "v()", spin, (void))();
    ended("it loops without end");
    printf("the other domain goes on: %d\n", others());
    return 0;
}
