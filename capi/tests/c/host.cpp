// A host in C++: the header as it is, exceptions of the host's own beside calls.
#include <postern.h>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static void check(bool good, const char *what)
{
    if (!good) throw std::runtime_error(std::string(what) + ": " + pt_error());
}

static int twice(int x)
{
    try {
        if (x == 13) throw std::runtime_error("caught in the service");
    } catch (const std::exception &e) {
        pt_service_abort(e.what());
    }
    return 2 * x;
}
static double scale(double x) { return x; }
static void note(pt_offset) {}

int main(int, char **argv)
{
    try {
        pt_options *options = pt_options_new();
        check(!pt_service(options, "twice", reinterpret_cast<void *>(twice), "i(i)"), "twice");
        check(!pt_service(options, "scale", reinterpret_cast<void *>(scale), "d(d)"), "scale");
        check(!pt_service(options, "note", reinterpret_cast<void *>(note), "v(p)"), "note");
        pt_image *image = pt_image_load(argv[1]);
        check(image, "load");
        pt_domain *domain = pt_open(image, options);
        check(domain, "open");
        auto add = reinterpret_cast<long (*)(int, int)>(pt_sym(domain, "add"));
        auto twice_plus = reinterpret_cast<int (*)(int)>(pt_sym(domain, "twice_plus"));
        check(add(2, 3) == 5 && twice_plus(4) == 9, "calls");
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; i++)
            threads.emplace_back([=] {
                for (int n = 0; n < 1000; n++)
                    if (add(n, i) != n + i) std::abort();
            });
        for (auto &t : threads) t.join();
        check(twice_plus(13) == 0 && std::string(pt_last_fault()->message).find("caught in the service") != std::string::npos,
              "abort");
        check(!pt_close(domain), "close");
    } catch (const std::exception &e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
    return 0;
}
