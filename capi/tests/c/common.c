/* A domain that several processes have, by the path of who keeps its state. Arguments: image, path,
 * path of the state of another image, path where nobody is. */
#include "check.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int (*add_function)(int);

static int asked(void) { return 7; }

static pt_options *options;
static pt_image *image;

static pt_domain *attach(const char *path)
{
    pt_domain *domain = pt_domain_shared(path, image, options);
    CHECK(domain);
    return domain;
}

static add_function adder(pt_domain *domain)
{
    int (*add)(int) = PT_SYM(domain, int, add, (int));
    CHECK(add);
    return add;
}

static int ends(pid_t child)
{
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    return status;
}

int main(int argc, char **argv)
{
    CHECK(argc == 5 && (options = pt_options_new()));
    CHECK(pt_options_deadline(options, 0) == 0);
    CHECK((image = pt_image_load(argv[1])));
    /* What all could use is said to be so. */
    CHECK(pt_options_service(options, "asked", (void *)asked, "i()") == 0);
    CHECK(!pt_domain_shared(argv[2], image, options) && pt_error_code() == PT_E_ARGUMENT);
    CHECK(pt_options_grant_to_all(options, "asked") == 0);
    CHECK(pt_options_grant_to_all(options, NULL) == PT_E_ARGUMENT && pt_options_grant_to_all(NULL, "asked") != 0);
    pt_domain *domain = attach(argv[2]);
    int (*ask)(void) = PT_SYM(domain, int, ask, (void));
    CHECK(ask && ask() == 7);
    add_function add = adder(domain);
    CHECK(add(1) == 1);

    pid_t child = fork();
    if (child == 0)
        _exit(adder(attach(argv[2]))(10) == 11 ? 0 : 1);
    CHECK(ends(child) == 0 && add(100) == 111);

    /* A process that is killed inside closes it for all, and says so. */
    child = fork();
    if (child == 0) {
        void (*hold)(void) = PT_SYM(attach(argv[2]), void, hold, (void));
        hold();
        _exit(1);
    }
    while (add(0) < 1000)
        usleep(100);
    char text[80], wanted[80];
    CHECK(pt_domain_poison(domain, text, sizeof text) == 0);
    CHECK(kill(child, SIGKILL) == 0 && WIFSIGNALED(ends(child)));
    while (!pt_domain_poisoned(domain))
        usleep(100);
    int length = snprintf(wanted, sizeof wanted, "process %d ended while it was inside `hold`", child);
    CHECK(pt_domain_poison(domain, text, sizeof text) == length && strcmp(text, wanted) == 0);
    CHECK(pt_domain_poison(domain, text, 8) == length && strcmp(text, "process") == 0);
    CHECK(pt_domain_reset(domain) == 0 && pt_domain_poison(domain, NULL, 0) == 0);
    CHECK(add(1) == 1);
    CHECK(pt_domain_free(domain) == 0);

    /* The state is there as long as somebody keeps it. */
    domain = attach(argv[2]);
    CHECK(adder(domain)(1) == 2);
    CHECK(pt_domain_free(domain) == 0);

    CHECK(!pt_domain_shared(argv[3], image, options) && pt_error_code() == PT_E_ARGUMENT);
    CHECK(!pt_domain_shared(argv[4], image, options) && pt_error_code() == PT_E_SYSTEM);
    CHECK(!pt_domain_shared("no name", image, options) && pt_error_code() != 0);
    CHECK(!pt_domain_shared(NULL, image, options) && pt_error_code() == PT_E_ARGUMENT);
    CHECK(pt_image_free(image) == 0 && pt_options_free(options) == 0);
    return 0;
}
