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
    if (!good) throw std::runtime_error(std::string(what) + ": " + pt_error_message());
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
static bool judge(bool x) { static const bool table[2] = {true, false}; return table[x]; }

int main(int, char **argv)
{
    try {
        pt_options *options = pt_options_new();
        check(!pt_options_service(options, "twice", reinterpret_cast<void *>(twice), "i(i)"), "twice");
        check(!pt_options_service(options, "scale", reinterpret_cast<void *>(scale), "d(d)"), "scale");
        check(!pt_options_service(options, "note", reinterpret_cast<void *>(note), PT_SIGNATURE(void, (pt_offset))), "note");
        check(!pt_options_service(options, "judge", reinterpret_cast<void *>(judge), PT_SIGNATURE(bool, (bool))), "judge");
        pt_image *image = pt_image_load(argv[1]);
        check(image, "load");
        pt_domain *domain = pt_domain_new(image, options);
        check(domain, "open");
        auto add = PT_SYM(domain, long, add, (int, int));
        auto twice_plus = PT_SYM(domain, int, twice_plus, (int));
        check(add(2, 3) == 5 && twice_plus(4) == 9, "calls");
        auto truth = PT_SYM(domain, bool, truth, (long));
        auto judged = PT_SYM(domain, bool, judged, (long));
        static const int table[2] = {10, 20};
        check(table[truth(0x80)] == 10 && table[truth(0x83)] == 20 && judged(0x80) && !judged(0x83), "bool");
        check(!PT_SYM(domain, long, add, (int, int, long)) && pt_error_code() == PT_E_SIGNATURE, "another type");
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; i++)
            threads.emplace_back([=] {
                for (int n = 0; n < 1000; n++)
                    if (add(n, i) != n + i) std::abort();
            });
        for (auto &t : threads) t.join();
        check(twice_plus(13) == 0 && std::string(pt_fault_last()->message).find("caught in the service") != std::string::npos,
              "abort");
        check(!pt_domain_free(domain), "close");
    } catch (const std::exception &e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
    return 0;
}
