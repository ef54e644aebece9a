// The language: classes, templates, lambdas, static objects and their order, run-time types.
#include <algorithm>
#include <any>
#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <typeindex>
#include <typeinfo>
#include <variant>
#include <vector>

struct Talker {
    std::string name;
    explicit Talker(std::string n) : name(std::move(n)) { std::printf("make %s\n", name.c_str()); }
    Talker(const Talker &other) : name(other.name + "'") { std::printf("copy %s\n", name.c_str()); }
    Talker(Talker &&other) noexcept : name(std::move(other.name)) { std::printf("move %s\n", name.c_str()); }
    ~Talker() { std::printf("destroy %s\n", name.c_str()); }
};

static Talker first("first");
__attribute__((init_priority(500))) static Talker early("early");
static Talker second("second");
static Talker &local()
{
    static Talker talker("local");
    return talker;
}
thread_local Talker per_thread("per thread");
static int counted = [] { return std::printf("initialized\n"); }();

struct Shape {
    virtual double area() const = 0;
    virtual std::string name() const { return "shape"; }
    virtual ~Shape() { std::printf("~Shape\n"); }
};
struct Square : Shape {
    double side;
    explicit Square(double s) : side(s) {}
    double area() const override { return side * side; }
    ~Square() override { std::printf("~Square\n"); }
};
struct Circle final : Shape {
    double radius;
    explicit Circle(double r) : radius(r) {}
    double area() const override { return 3 * radius * radius; }
    std::string name() const override { return "circle"; }
};

struct Base {
    int b = 1;
    virtual int value() { return b; }
    virtual ~Base() = default;
};
struct Left : virtual Base {
    int l = 2;
    int value() override { return l; }
};
struct Right : virtual Base {
    int r = 3;
    virtual int other() { return r + b; }
};
struct Both : Left, Right {
    int both = 4;
    int value() override { return both + l + r + b; }
    int other() override { return Right::other() * 10; }
};

template <class T, int N> struct Power {
    static constexpr T of(T x) { return x * Power<T, N - 1>::of(x); }
};
template <class T> struct Power<T, 0> {
    static constexpr T of(T) { return 1; }
};
template <class... T> static auto total(T... values) { return (values + ... + 0); }
template <class F> static int twice(F f, int x) { return f(f(x)); }

static std::function<int(int)> adder(int n)
{
    return [n, sum = std::make_shared<int>(0)](int x) { return *sum += x + n; };
}

int main()
{
    std::printf("main\n");
    local().name += "!";
    per_thread.name += "?";
    std::vector<std::unique_ptr<Shape>> shapes;
    shapes.push_back(std::make_unique<Square>(1.5));
    shapes.push_back(std::make_unique<Circle>(2));
    for (const auto &shape : shapes)
        std::printf("%s %.2f %s\n", shape->name().c_str(), shape->area(), typeid(*shape).name());
    std::printf("%d %d\n", dynamic_cast<Circle *>(shapes[0].get()) != nullptr, dynamic_cast<Circle *>(shapes[1].get()) != nullptr);
    shapes.clear();

    Both both;
    Base *base = &both;
    Right *right = dynamic_cast<Right *>(base);
    std::printf("%d %d %d %d\n", base->value(), right->other(), dynamic_cast<Left *>(right)->l, static_cast<int>(sizeof both));
    int (Right::*member)() = &Right::other;
    std::printf("%d %s\n", (right->*member)(), std::type_index(typeid(*right)) == typeid(Both) ? "same" : "different");

    std::printf("%lld %d %.1f\n", Power<long long, 13>::of(7), total(1, 2, 3, 4), total(1.5, 2));
    int captured = 5;
    std::printf("%d\n", twice([&captured](int x) { return captured++ + x; }, 10));
    auto f = adder(1), g = f;
    std::printf("%d %d %d\n", f(1), g(2), std::bind(f, std::placeholders::_1)(3));

    auto shared = std::make_shared<Talker>("shared");
    std::weak_ptr<Talker> weak = shared;
    auto again = shared;
    std::printf("%ld\n", shared.use_count());
    shared.reset();
    again.reset();
    std::printf("%d\n", weak.expired());

    std::optional<std::string> maybe;
    std::printf("%s ", maybe.value_or("nothing").c_str());
    maybe = "something";
    std::printf("%s\n", maybe->c_str());
    std::variant<int, std::string, double> variant = "text";
    for (int i = 0; i < 3; i++) {
        std::visit(
            [](const auto &value) {
                using T = std::decay_t<decltype(value)>;
                if constexpr (std::is_same_v<T, std::string>)
                    std::printf("string %s\n", value.c_str());
                else
                    std::printf("%s %g\n", typeid(T).name(), static_cast<double>(value));
            },
            variant);
        if (i == 0)
            variant = 3;
        else
            variant = 2.25;
    }
    std::any any = std::vector<int>{1, 2, 3};
    std::printf("%zu %d\n", std::any_cast<std::vector<int> &>(any).size(), std::any_cast<int>(&any) != nullptr);
    std::vector<Talker> grown;
    grown.emplace_back("one");
    grown.emplace_back("two");
    grown.emplace_back("three");
    return counted;
}
