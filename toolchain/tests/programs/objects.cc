// C++: virtual calls, multiple inheritance, templates, lambdas, member pointers, static constructors, new and delete.
#include <new>
#include "mix.h"

struct shape {
    virtual unsigned long area() const = 0;
    virtual ~shape() {}
};
struct named {
    virtual unsigned long name() const { return 1; }
    long tag = 5;
    virtual ~named() {}
};
struct square : shape, named {
    unsigned long side;
    square(unsigned long s) : side(s) {}
    unsigned long area() const override { return side * side; }
    unsigned long name() const override { return side + 2; }
};
struct round : virtual named, shape {
    unsigned long radius;
    round(unsigned long r) : radius(r) {}
    unsigned long area() const override { return 3 * radius * radius; }
    unsigned long name() const override { return radius ^ 7; }
};

template <typename T> struct list {
    struct node { T value; node *next; };
    node *first = nullptr;
    unsigned count = 0;
    void push(T value) { first = new node{ value, first }; count++; }
    template <typename F> void each(F f) const { for (node *n = first; n; n = n->next) f(n->value); }
    ~list() { while (first) { node *n = first->next; delete first; first = n; } }
};

struct counter {
    unsigned long value;
    counter(unsigned long v) : value(v * 17) {}
    NOINLINE unsigned long next() { return value = value * 3 + 1; }
    NOINLINE unsigned long skip() { return value += 1000; }
};
static counter global(3);
static counter table[3] = { 1, 2, 3 };
unsigned long dynamic = global.next();

template <unsigned N> struct fibonacci { static constexpr unsigned long value = fibonacci<N - 1>::value + fibonacci<N - 2>::value; };
template <> struct fibonacci<1> { static constexpr unsigned long value = 1; };
template <> struct fibonacci<0> { static constexpr unsigned long value = 0; };

NOINLINE static unsigned long apply(counter &c, unsigned long (counter::*f)()) { return (c.*f)(); }
NOINLINE static unsigned long lazily(unsigned long x) { static counter once(x); return once.next(); }

struct alignas(64) wide { unsigned long v[8]; };

extern "C" unsigned long run(unsigned long seed)
{
    unsigned long s = mix(seed, global.value + table[2].value + dynamic);
    list<shape *> shapes;
    list<named *> names;
    for (unsigned long i = 0; i < 30; i++) {
        if (i % 3) {
            auto *q = new square(i);
            shapes.push(q);
            names.push(q);
        } else {
            auto *r = new round(i);
            shapes.push(r);
            names.push(r);
        }
    }
    unsigned long total = 0;
    shapes.each([&](shape *p) { total += p->area(); });
    names.each([&](named *p) { total = total * 3 + p->name() + (unsigned long)p->tag; });
    shapes.each([](shape *p) { delete p; });
    s = mix(s, total + fibonacci<40>::value);
    s = mix(s, apply(global, &counter::next) + apply(global, &counter::skip));
    s = mix(s, lazily(4) + lazily(5));
    wide *w = new wide[3]();
    s = mix(s, (unsigned long)w % 64 + w[2].v[7]);
    delete[] w;
    return s;
}
