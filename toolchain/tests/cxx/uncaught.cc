// Exceptions that leave a call.
#include <postern/extension.h>

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

POSTERN_IMPORT int host(int kind);

namespace shop {
struct Empty : std::exception {
    const char *what() const noexcept override { return "nothing left"; }
};
}

struct Abstract {
    Abstract() { call(); }
    void call() { pure(); }
    virtual void pure() = 0;
};
struct Concrete : Abstract {
    void pure() override {}
};

static void quiet() noexcept { throw std::runtime_error("from noexcept"); }

POSTERN_EXPORT int throw_kind(int kind)
{
    std::string kept(static_cast<size_t>(100 + kind), 'x');
    std::vector<int> vector;
    switch (kind) {
    case 1: vector.reserve(~size_t(0) / 2); break;
    case 2: return vector.at(static_cast<size_t>(kind));
    case 3: throw shop::Empty();
    case 4: throw 4;
    case 5: {
        volatile size_t much = size_t(3) << 30;
        char *volatile block = new char[much];
        return block[0];
    }
    case 6: quiet(); break;
    case 7: std::terminate();
    case 8: Concrete();
    }
    return 0;
}

POSTERN_EXPORT int catch_around_host(int kind)
{
    try {
        return host(kind);
    } catch (...) {
        return -1;
    }
}
