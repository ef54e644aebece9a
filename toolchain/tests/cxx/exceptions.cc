// Exceptions: what is caught where, what is destroyed on the way and in which order.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <typeinfo>
#include <variant>
#include <vector>

struct Guard {
    const char *name;
    explicit Guard(const char *n) : name(n) { std::printf("+%s ", name); }
    ~Guard() { std::printf("-%s ", name); }
};
struct Base {
    virtual const char *what() const { return "base"; }
    virtual ~Base() = default;
};
struct Side {
    int side = 7;
    virtual ~Side() = default;
};
struct Derived : Side, Base {
    const char *what() const override { return "derived"; }
};
struct Private : private Base {};

__attribute__((noinline)) static int provoke(int kind)
{
    Guard guard("provoke");
    switch (kind) {
    case 0: return 0;
    case 1: throw 42;
    case 2: throw std::runtime_error("a message that is longer than a small string");
    case 3: throw Derived();
    case 4: throw "text";
    case 5: return static_cast<int>(std::vector<int>(3).at(5));
    case 6: return std::stoi("none");
    case 7: throw Private();
    case 8: return static_cast<int>(std::string("abc").substr(9).size());
    case 9: return std::any_of(std::begin("x"), std::end("x"), [](char c) -> bool { throw c; });
    case 10: throw std::system_error(std::make_error_code(std::errc::no_such_file_or_directory), "open");
    case 11: return std::get<int>(std::variant<int, double>(2.0));
    case 12: return std::optional<int>().value();
    case 13: return std::function<int()>()();
    case 14: throw static_cast<Base *>(new Derived);
    case 15: return static_cast<int>(typeid(*static_cast<Base *>(nullptr)).hash_code());
    case 16: return dynamic_cast<Derived &>(*std::make_unique<Base>()).side;
    default: throw std::map<std::string, int>{{"one", 1}};
    }
}

// Stack arguments, floating-point registers, a frame of variable size, a realigned one.
__attribute__((noinline)) static double deep(int n, double a, long b, long c, long d, long e, long f, long g, long h, int kind)
{
    Guard guard("deep");
    volatile char *block = static_cast<char *>(__builtin_alloca(static_cast<size_t>(16 + n * 8)));
    block[n] = 1;
    alignas(64) volatile char aligned[64];
    aligned[0] = static_cast<char>(reinterpret_cast<unsigned long>(aligned) % 64);
    double kept = a * 2;
    if (n)
        kept += deep(n - 1, a + 0.5, h, g, f, e, d, c, b, kind);
    else
        kept += provoke(kind);
    return kept + static_cast<double>(b + h) + block[n] + aligned[0];
}

static void one(int kind)
{
    std::printf("%d: ", kind);
    Guard outer("outer");
    try {
        Guard inner("inner");
        std::printf("= %g ", deep(kind % 4, 1.25, 1, 2, 3, 4, 5, 6, 7, kind));
    } catch (int value) {
        std::printf("int %d ", value);
    } catch (const std::logic_error &error) {
        std::printf("logic %s ", error.what());
    } catch (const std::system_error &error) {
        std::printf("system %d ", error.code().value());
    } catch (const std::exception &error) {
        std::printf("exception %s ", error.what());
    } catch (const Base &base) {
        std::printf("class %s ", base.what());
    } catch (Base *base) {
        std::printf("pointer %s ", base->what());
        delete base;
    } catch (const char *text) {
        std::printf("text %s ", text);
    } catch (...) {
        std::printf("something ");
    }
    std::printf("\n");
}

static int rethrow(int depth)
{
    try {
        if (depth == 0)
            throw std::out_of_range("deepest");
        return rethrow(depth - 1);
    } catch (std::exception &error) {
        Guard guard("rethrow");
        if (depth == 4)
            return static_cast<int>(std::string(error.what()).size());
        if (depth == 2)
            std::throw_with_nested(std::runtime_error("middle"));
        throw;
    }
}

static void print(const std::exception &error, int level)
{
    std::printf("%*s%s\n", level * 2, "", error.what());
    try {
        std::rethrow_if_nested(error);
    } catch (const std::exception &inner) {
        print(inner, level + 1);
    }
}

struct Fragile {
    Guard a{"a"}, b{"b"};
    std::vector<int> data;
    explicit Fragile(int n) : data(10)
    {
        Guard c("c");
        data.at(static_cast<size_t>(n)) = 1;
    }
};

struct ThrowsInDestructor {
    bool armed;
    ~ThrowsInDestructor() noexcept(false)
    {
        if (armed && !std::uncaught_exceptions())
            throw 5L;
    }
};

static int function_try(int n)
try {
    return provoke(n);
} catch (...) {
    return -1;
}

static int compare(const void *left, const void *right)
{
    int a = *static_cast<const int *>(left), b = *static_cast<const int *>(right);
    return a - b;
}

int main()
{
    for (int kind = 0; kind <= 17; kind++)
        one(kind);
    std::printf("%d\n", rethrow(4));
    try {
        rethrow(3);
    } catch (const std::exception &error) {
        print(error, 0);
    }
    for (int n : {3, 30})
        try {
            Fragile fragile(n);
            std::printf("whole ");
        } catch (const std::exception &error) {
            std::printf("%s\n", error.what());
        }
    std::printf("\n");
    for (bool armed : {false, true})
        try {
            ThrowsInDestructor object{armed};
            std::printf("%d ", function_try(armed));
        } catch (long value) {
            std::printf("from a destructor %ld\n", value);
        }
    try {
        Guard *many = new Guard[3]{Guard("x"), Guard("y"), (provoke(4), Guard("z"))};
        delete[] many;
    } catch (const char *text) {
        std::printf("%s\n", text);
    }
    try {
        volatile size_t huge = ~size_t(0) / 4;
        char *volatile block = new char[huge];
        delete[] block;
    } catch (const std::bad_alloc &error) {
        std::printf("%s\n", error.what());
    }
    std::exception_ptr kept;
    try {
        provoke(2);
    } catch (...) {
        kept = std::current_exception();
    }
    for (int i = 0; i < 2; i++)
        try {
            std::rethrow_exception(kept);
        } catch (const std::runtime_error &error) {
            std::printf("kept %s\n", error.what());
        }
    // Thrown and caught while another one is being handled, and while one is on its way.
    struct Busy {
        ~Busy()
        {
            try {
                throw 1;
            } catch (int) {
                std::printf("busy ");
            }
        }
    };
    try {
        Busy busy;
        throw 2;
    } catch (int outer) {
        try {
            throw outer + 1;
        } catch (int inner) {
            std::printf("%d %d %d\n", outer, inner, std::uncaught_exceptions());
        }
    }
    int sum = 0;
    for (int i = 0; i < 20000; i++)
        try {
            if (i % 3 == 0)
                throw i;
            sum -= i;
        } catch (int n) {
            sum += n;
        }
    std::printf("%d\n", sum);
    int values[] = {5, 2, 9, 1};
    std::qsort(values, 4, sizeof *values, compare);
    std::printf("%d%d%d%d\n", values[0], values[1], values[2], values[3]);
    return function_try(0) + 3;
}
