/* The host's C types as Postern's signatures. It is a part of <postern.h>, which includes it; C11
 * or C++11.
 *
 *     long (*add)(int, int) = PT_SYM(domain, long, add, (int, int));
 *
 * asks for the export "add" with the types that are written there, and gives a pointer of exactly
 * those types. Gates copy arguments by them; what the file claims is only compared. Types that can
 * cross: _Bool, the integer types, float, double, pt_offset, and void for no result and for no
 * parameters, (void). Any other one (a host's pointer, a structure, a qualified type) does not
 * compile.
 *
 * Licence: Apache-2.0. */
#ifndef POSTERN_TYPES_H
#define POSTERN_TYPES_H

#include <postern.h>

#if defined(__cplusplus) ? __cplusplus >= 201103L : defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L

/* Pointers to functions `name` of a domain, a module, a namespace; and to a function whose offset
 * came from the extension. */
#define PT_SYM(domain, result, name, parameters) PT_CAST_(result, parameters, pt_domain_sym(domain, #name, PT_SIGNATURE(result, parameters)))
#define PT_SYM_AT(domain, function, result, parameters) \
    PT_CAST_(result, parameters, pt_domain_sym_at(domain, function, PT_SIGNATURE(result, parameters)))
#define PT_MODULE_SYM(module, result, name, parameters) \
    PT_CAST_(result, parameters, pt_module_sym(module, #name, PT_SIGNATURE(result, parameters)))
#define PT_NAMESPACE_SYM(space, result, name, parameters) \
    PT_CAST_(result, parameters, pt_namespace_sym(space, #name, PT_SIGNATURE(result, parameters)))

/* PT_SIGNATURE(int, (int, double)) is "i(id)", for whatever takes a signature as text. In C it
 * lives as long as the block around it. */
#ifdef __cplusplus

extern "C++" {
template <typename T> struct pt_type_; /* for types that can cross only */
template <> struct pt_type_<void> { static constexpr char letter = 'v'; };
template <> struct pt_type_<bool> { static constexpr char letter = 'z'; };
template <> struct pt_type_<char> { static constexpr char letter = char(-1) < char(0) ? 'b' : 'B'; };
template <> struct pt_type_<signed char> { static constexpr char letter = 'b'; };
template <> struct pt_type_<unsigned char> { static constexpr char letter = 'B'; };
template <> struct pt_type_<short> { static constexpr char letter = 'h'; };
template <> struct pt_type_<unsigned short> { static constexpr char letter = 'H'; };
template <> struct pt_type_<int> { static constexpr char letter = 'i'; };
template <> struct pt_type_<unsigned int> { static constexpr char letter = 'I'; };
template <> struct pt_type_<long> { static constexpr char letter = 'l'; };
template <> struct pt_type_<unsigned long> { static constexpr char letter = 'L'; };
template <> struct pt_type_<long long> { static constexpr char letter = 'l'; };
template <> struct pt_type_<unsigned long long> { static constexpr char letter = 'L'; };
template <> struct pt_type_<float> { static constexpr char letter = 'f'; };
template <> struct pt_type_<double> { static constexpr char letter = 'd'; };

template <typename F> struct pt_signature_;
template <typename R, typename... P> struct pt_signature_<R(P...)> {
    static const char *text()
    {
        static_assert(sizeof...(P) <= 16, "at most sixteen parameters");
        static const char letters[] = {pt_type_<R>::letter, '(', pt_type_<P>::letter..., ')', 0};
        return letters;
    }
};
}
#define PT_SIGNATURE(result, parameters) (pt_signature_<result parameters>::text())
#define PT_CAST_(result, parameters, pointer) (reinterpret_cast<result (*) parameters>(pointer))

#else

#define PT_SIGNATURE(result, parameters) ((const char[]){PT_LETTER_(result, 'v'), '(', PT_EACH_ parameters, 0})
#define PT_CAST_(result, parameters, pointer) (__extension__(result(*) parameters)(pointer))

/* A type by a pointer to it, so that nothing is converted and void is a type like others. */
#define PT_LETTER_(type, nothing) \
    _Generic((type *)0, void *: nothing, _Bool *: 'z', char *: (char)-1 < (char)0 ? 'b' : 'B', signed char *: 'b', \
        unsigned char *: 'B', short *: 'h', unsigned short *: 'H', int *: 'i', unsigned int *: 'I', long *: 'l', \
        unsigned long *: 'L', long long *: 'l', unsigned long long *: 'L', float *: 'f', double *: 'd')
#define PT_EACH_(...) PT_JOIN_(PT_EACH_, PT_COUNT_(__VA_ARGS__))(__VA_ARGS__)
#define PT_JOIN_(a, b) PT_JOINED_(a, b)
#define PT_JOINED_(a, b) a##b
#define PT_COUNT_(...) PT_NTH_(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define PT_NTH_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, count, ...) count
/* The last letter and the parenthesis; of (void) only that. */
#define PT_EACH_1(a) PT_LETTER_(a, ')'), _Generic((a *)0, void *: 0, default: ')')
#define PT_EACH_2(a, ...) PT_LETTER_(a, 0), PT_EACH_1(__VA_ARGS__)
#define PT_EACH_3(a, ...) PT_LETTER_(a, 0), PT_EACH_2(__VA_ARGS__)
#define PT_EACH_4(a, ...) PT_LETTER_(a, 0), PT_EACH_3(__VA_ARGS__)
#define PT_EACH_5(a, ...) PT_LETTER_(a, 0), PT_EACH_4(__VA_ARGS__)
#define PT_EACH_6(a, ...) PT_LETTER_(a, 0), PT_EACH_5(__VA_ARGS__)
#define PT_EACH_7(a, ...) PT_LETTER_(a, 0), PT_EACH_6(__VA_ARGS__)
#define PT_EACH_8(a, ...) PT_LETTER_(a, 0), PT_EACH_7(__VA_ARGS__)
#define PT_EACH_9(a, ...) PT_LETTER_(a, 0), PT_EACH_8(__VA_ARGS__)
#define PT_EACH_10(a, ...) PT_LETTER_(a, 0), PT_EACH_9(__VA_ARGS__)
#define PT_EACH_11(a, ...) PT_LETTER_(a, 0), PT_EACH_10(__VA_ARGS__)
#define PT_EACH_12(a, ...) PT_LETTER_(a, 0), PT_EACH_11(__VA_ARGS__)
#define PT_EACH_13(a, ...) PT_LETTER_(a, 0), PT_EACH_12(__VA_ARGS__)
#define PT_EACH_14(a, ...) PT_LETTER_(a, 0), PT_EACH_13(__VA_ARGS__)
#define PT_EACH_15(a, ...) PT_LETTER_(a, 0), PT_EACH_14(__VA_ARGS__)
#define PT_EACH_16(a, ...) PT_LETTER_(a, 0), PT_EACH_15(__VA_ARGS__)

#endif
#endif
#endif
