// What std::terminate does unless the program says otherwise: the call ends in a fault whose message names the exception.
#include <cxxabi.h>
#include <exception>
#include <typeinfo>

#include <postern/extension.h>

namespace {

struct Message {
    char text[1024];
    unsigned length = 0;

    void add(char c)
    {
        if (length + 1 < sizeof text)
            text[length++] = c;
        text[length] = 0;
    }
    void add(const char *s)
    {
        while (*s)
            add(*s++);
    }
    // The name of a simple type, or of one that is made of identifiers only (`St12length_error`, `N4json5ErrorE`); another one
    // as it is.
    void add_type(const char *mangled)
    {
        static const char *const simple[][2] = {
            {"i", "int"}, {"j", "unsigned"}, {"l", "long"}, {"m", "unsigned long"}, {"c", "char"}, {"b", "bool"},
            {"d", "double"}, {"f", "float"}, {"PKc", "const char *"}, {"Pc", "char *"},
        };
        for (const auto &name : simple)
            if (!__builtin_strcmp(mangled, name[0]))
                return add(name[1]);
        unsigned before = length;
        const char *s = mangled;
        bool nested = *s == 'N', more = false;
        s += nested;
        if (s[0] == 'S' && s[1] == 't') {
            add("std");
            more = true;
            s += 2;
        }
        do {
            unsigned n = 0;
            while (*s >= '0' && *s <= '9')
                n = 10 * n + unsigned(*s++ - '0');
            if (!n)
                break;
            if (more)
                add("::");
            more = true;
            for (; n && *s; n--)
                add(*s++);
        } while (nested && *s != 'E');
        if (*s && !(nested && s[0] == 'E' && !s[1])) {
            length = before;
            add(mangled);
        }
    }
};

void end()
{
    static bool ending;
    if (ending)
        __postern_abort("terminate called recursively");
    ending = true;
    Message message;
    std::type_info *type = abi::__cxa_current_exception_type();
    if (!type) {
        message.add("terminate called without an active exception");
    } else {
        message.add("terminate called after throwing ");
        message.add_type(type->name());
        try {
            throw;
        } catch (const std::exception &exception) {
            message.add(": ");
            message.add(exception.what());
        } catch (...) {
        }
    }
    ending = false;
    __postern_abort(message.text);
}

}

namespace __cxxabiv1 {
extern std::terminate_handler __terminate_handler;
std::terminate_handler __terminate_handler = end;
}
