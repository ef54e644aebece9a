//! The C around the C of wasm2c: what makes a module's imports services and its exports functions
//! of an extension.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use super::module::{Export, Function, Import, Item, Module, Sizes, Value};

/// The names of WASI's functions, which the shim answers itself.
const WASI: [&str; 2] = ["wasi_snapshot_preview1", "wasi_unstable"];

/// The name that wasm2c was told, from which it makes all names of the module.
pub const NAME: &str = "w";

/// The functions of the shim (`wasm/wasi.h`) and the letters of their parameters. Every other one
/// answers that it is not there.
const SHIM: &[(&str, &str)] = &[
    ("args_get", "ii"),
    ("args_sizes_get", "ii"),
    ("environ_get", "ii"),
    ("environ_sizes_get", "ii"),
    ("clock_time_get", "iji"),
    ("fd_close", "i"),
    ("fd_fdstat_get", "ii"),
    ("fd_prestat_get", "ii"),
    ("fd_read", "iiii"),
    ("fd_seek", "ijii"),
    ("fd_write", "iiii"),
    ("proc_exit", "i"),
    ("random_get", "ii"),
    ("sched_yield", ""),
];

/// Names that C's library has, and the compiler's calls of it. An export of such a name would take
/// its place.
const TAKEN: &str = " malloc free calloc realloc aligned_alloc main memcpy memmove memset memcmp memchr memrchr mempcpy strlen \
    strnlen strcmp strncmp strcpy strncpy strcat strncat strchr strrchr strstr strspn strcspn strpbrk strtok strdup strndup \
    strerror stpcpy strcoll strxfrm abort exit atexit _exit _Exit atoi atol atoll atof strtol strtoul strtoll strtoull strtod \
    strtof qsort bsearch rand srand abs labs llabs div ldiv lldiv getenv system isalpha isdigit isalnum isspace isupper \
    islower isprint iscntrl isgraph ispunct isxdigit tolower toupper printf fprintf sprintf snprintf vprintf vfprintf \
    vsprintf vsnprintf puts putchar putc fputs fputc getc getchar fgetc fgets ungetc scanf sscanf fscanf fopen fclose \
    fflush fread fwrite fseek ftell rewind feof ferror clearerr perror remove rename tmpfile setbuf setvbuf open close \
    read write lseek stat fstat unlink isatty time clock clock_gettime gettimeofday sbrk sys setjmp longjmp raise signal \
    errno acos asin atan atan2 cos sin tan cosh sinh tanh acosh asinh atanh exp exp2 expm1 frexp ldexp log log10 log1p log2 \
    modf pow sqrt cbrt hypot erf erfc tgamma lgamma ceil floor trunc round lround llround rint lrint nearbyint fmod \
    remainder copysign fabs fdim fmax fmin fma scalbn ilogb logb nan floorf ceilf truncf sqrtf fabsf fmodf powf expf logf \
    sinf cosf tanf roundf rintf nearbyintf fminf fmaxf wasm_memory wasm_memory_size wasm_main ";

/// The extension's name for an export: its own, with `_` for what C has not, and `wasm_` before a
/// name that C's library has.
pub fn export_name(name: &str) -> String {
    let name = identifier(name);
    let taken = TAKEN.split_whitespace().any(|taken| taken == name);
    if taken || name.starts_with("__postern_") {
        format!("wasm_{name}")
    } else {
        name
    }
}

/// The service that an import is: both names, joined by `_`.
pub fn service_name(module: &str, name: &str) -> String {
    identifier(&format!("{module}_{name}"))
}

fn identifier(name: &str) -> String {
    let ordinary = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out: String = name
        .chars()
        .map(|c| if ordinary(c) { c } else { '_' })
        .collect();
    if !out.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        out.insert(0, '_');
    }
    out
}

/// A name as wasm2c writes it.
fn mangled(name: &str) -> String {
    let mut out = "Z_".to_owned();
    for byte in name.bytes() {
        if (byte.is_ascii_alphanumeric() && byte != b'Z') || byte == b'_' {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "Z{byte:02X}");
        }
    }
    out
}

/// The C type of a value on the side of wasm2c.
fn inner(value: Value) -> &'static str {
    match value {
        Value::I32 => "u32",
        Value::I64 => "u64",
        Value::F32 => "f32",
        Value::F64 => "f64",
        Value::Reference => "void *",
    }
}

/// The C type of a value on the side of the host.
fn outer(value: Value) -> &'static str {
    match value {
        Value::I32 => "int",
        Value::I64 => "long",
        Value::F32 => "float",
        Value::F64 => "double",
        Value::Reference => "void *",
    }
}

/// The structure in which wasm2c returns several results.
fn tuple(results: &[Value]) -> String {
    let letters: String = results.iter().map(|result| letter(*result)).collect();
    format!("struct wasm_multi_{letters}")
}

fn letter(value: Value) -> char {
    match value {
        Value::I32 => 'i',
        Value::I64 => 'j',
        Value::F32 => 'f',
        Value::F64 => 'd',
        Value::Reference => 'r',
    }
}

fn has_references(function: &Function) -> bool {
    function
        .parameters
        .iter()
        .chain(&function.results)
        .any(|value| *value == Value::Reference)
}

/// `type p0, type p1`, after `first`.
fn parameters(
    function: &Function,
    first: &str,
    last: &str,
    ty: fn(Value) -> &'static str,
) -> String {
    let named = function.parameters.iter().enumerate();
    let mut all: Vec<String> = named
        .map(|(k, value)| format!("{} p{k}", ty(*value)))
        .collect();
    if !first.is_empty() {
        all.insert(0, first.to_owned());
    }
    if !last.is_empty() {
        all.push(last.to_owned());
    }
    if all.is_empty() {
        all.push("void".to_owned());
    }
    all.join(", ")
}

fn arguments(function: &Function, first: &str, last: &str) -> String {
    let mut all: Vec<String> = (0..function.parameters.len())
        .map(|k| format!("p{k}"))
        .collect();
    if !first.is_empty() {
        all.insert(0, first.to_owned());
    }
    if !last.is_empty() {
        all.push(last.to_owned());
    }
    all.join(", ")
}

/// The result on the host's side; several are written to memory, eight bytes for each.
fn outer_result(function: &Function) -> (&'static str, &'static str) {
    match function.results.as_slice() {
        [] => ("void", ""),
        [result] => (outer(*result), ""),
        _ => ("void", "void *results"),
    }
}

/// The C before wasm2c's: macros about the memory, our prelude, its header, the one instance.
pub fn before(module: &Module, reserved: Option<u32>, grows: bool, header: &str) -> String {
    let mut out = String::new();
    if let (Some(sizes), Some(reserved)) = (module.memory, reserved) {
        let _ = writeln!(out, "#define WASM_MEMORY_RESERVED {reserved}u");
        if !grows {
            let _ = writeln!(out, "#define WASM_MEMORY_FIXED {}u", sizes.least);
        }
    }
    let _ = writeln!(
        out,
        "#include \"wasm-rt.h\"\n#include \"{header}\"\nstatic Z_{NAME}_instance_t wasm_instance;"
    );
    let mut numbers: HashMap<&Function, usize> = HashMap::new();
    let ids: Vec<String> = module
        .types
        .iter()
        .map(|function| {
            let next = numbers.len() + 1;
            numbers.entry(function).or_insert(next).to_string()
        })
        .collect();
    let _ = writeln!(
        out,
        "static const u32 func_types[] = {{{} 0}};",
        ids.iter().map(|id| format!("{id}, ")).collect::<String>()
    );
    out
}

/// The C after wasm2c's: imports, instantiation, exports. `instantiate` is the declaration of
/// wasm2c's function of that name.
///
/// # Errors
/// A sentence about a name or type that cannot be had.
pub fn after(module: &Module, instantiate: &str) -> Result<String, String> {
    let mut names = Names::default();
    let mut out = String::new();
    let shim = module.imports.iter().any(is_wasi);
    if shim {
        out.push_str("#include \"wasi.h\"\n");
    }
    let mut seen = HashSet::new();
    for (k, import) in module.imports.iter().enumerate() {
        // The same import may stand there twice; wasm2c makes one of it.
        if seen.insert((&import.module, &import.name)) {
            out.push_str(&imported(module, import, k, &mut names)?);
        }
    }
    let nobody = ", (void *)0".repeat(instantiate.matches(',').count());
    let reactor = module.exports.iter().find(|export| {
        export.name == "_initialize" && export.item == Item::Function(Function::default())
    });
    let reactor = reactor.map_or(String::new(), |export| {
        format!("    Z_{NAME}{}(&wasm_instance);\n", mangled(&export.name))
    });
    let _ = writeln!(
        out,
        "static __attribute__((constructor)) void wasm_start(void)\n{{\n    \
         Z_{NAME}_instantiate(&wasm_instance{nobody});\n{reactor}}}"
    );
    for (k, export) in module.exports.iter().enumerate() {
        out.push_str(&exported(export, k, shim, &mut names)?);
    }
    let outside = |item: &Item| *item == Item::Memory;
    if module.exports.iter().any(|export| outside(&export.item))
        || module.imports.iter().any(|import| outside(&import.item))
    {
        out.push_str(
            "WASM_EXPORT void *wasm_memory(void) { return wasm_data; }\n\
             WASM_EXPORT unsigned long wasm_memory_size(void) { return (unsigned long)wasm_size; }\n",
        );
    }
    Ok(out)
}

/// The names of the extension, each with what it is the name of.
#[derive(Default)]
struct Names(HashMap<String, String>);

impl Names {
    fn claim(&mut self, name: &str, of: String) -> Result<(), String> {
        match self.0.get(name) {
            Some(before) => Err(format!(
                "{of} and {before} would both have the name `{name}`; rename one of them in the module"
            )),
            None => {
                self.0.insert(name.to_owned(), of);
                Ok(())
            }
        }
    }
}

fn is_wasi(import: &Import) -> bool {
    WASI.contains(&import.module.as_str()) && matches!(import.item, Item::Function(_))
}

fn imported(
    module: &Module,
    import: &Import,
    k: usize,
    names: &mut Names,
) -> Result<String, String> {
    let full = format!("{}.{}", import.module, import.name);
    let from = format!("struct {}_instance_t *from", mangled(&import.module));
    let name = format!("{}{}", mangled(&import.module), mangled(&import.name));
    let service = service_name(&import.module, &import.name);
    let of = format!("the import `{full}`");
    let made_here = |ty: &str, sizes: &Sizes| {
        let (least, most) = (sizes.least, sizes.most.unwrap_or(u32::MAX));
        format!(
            "wasm_rt_{ty}_t *{name}({from})\n{{\n    static wasm_rt_{ty}_t made;\n    \
             wasm_rt_allocate_{ty}(&made, {least}u, {most}u);\n    return &made;\n}}\n"
        )
    };
    match &import.item {
        Item::Function(function) if is_wasi(import) => {
            let result = function
                .results
                .first()
                .map_or("void", |value| inner(*value));
            let takes = parameters(function, &from, "", inner);
            let letters: String = function.parameters.iter().map(|p| letter(*p)).collect();
            let gives = if function.results.is_empty() {
                ""
            } else {
                "return "
            };
            let body = if SHIM.contains(&(import.name.as_str(), letters.as_str())) {
                format!(
                    "{gives}wasi_{}({});",
                    import.name,
                    arguments(function, "", "")
                )
            } else {
                format!("{gives}WASI_NOSYS;")
            };
            Ok(format!("{result} {name}({takes}) {{ {body} }}\n"))
        }
        Item::Function(function) if has_references(function) => Err(format!(
            "{of} passes references, which a host can neither give nor take"
        )),
        Item::Function(function) => {
            names.claim(&service, of)?;
            let (outer_type, last) = outer_result(function);
            let declared = parameters(function, "", last, outer);
            let defined = parameters(function, &from, "", inner);
            let head = format!(
                "POSTERN_IMPORT {outer_type} wasm_import_{k}({declared}) __asm__(\"{service}\");\n"
            );
            let call = |last| format!("wasm_import_{k}({})", arguments(function, "", last));
            Ok(match function.results.as_slice() {
                [] => format!("{head}void {name}({defined}) {{ {}; }}\n", call("")),
                [result] => {
                    let result = inner(*result);
                    format!(
                        "{head}{result} {name}({defined}) {{ return ({result}){}; }}\n",
                        call("")
                    )
                }
                results => {
                    let ty = tuple(results);
                    let mut body = format!("    u64 results[{}];\n    {ty} all;\n", results.len());
                    let _ = writeln!(body, "    {};", call("results"));
                    for (n, result) in results.iter().enumerate() {
                        let (field, ty) = (letter(*result), inner(*result));
                        let _ = writeln!(
                            body,
                            "    __builtin_memcpy(&all.{field}{n}, &results[{n}], sizeof({ty}));"
                        );
                    }
                    format!("{head}{ty} {name}({defined})\n{{\n{body}    return all;\n}}\n")
                }
            })
        }
        Item::Global(Value::Reference) => {
            Err(format!("{of} is a reference, which a host cannot give"))
        }
        Item::Global(value) => {
            names.claim(&service, of)?;
            let (inner, outer) = (inner(*value), outer(*value));
            Ok(format!(
                "POSTERN_IMPORT {outer} wasm_import_{k}(void) __asm__(\"{service}\");\n\
                 {inner} *{name}({from})\n{{\n    static {inner} value;\n    \
                 value = ({inner})wasm_import_{k}();\n    return &value;\n}}\n"
            ))
        }
        Item::Memory => module
            .memory
            .map(|sizes| made_here("memory", &sizes))
            .ok_or_else(|| format!("{of} has no size")),
        Item::Table(sizes, true) => Ok(made_here("funcref_table", sizes)),
        Item::Table(sizes, false) => Ok(made_here("externref_table", sizes)),
    }
}

fn exported(export: &Export, k: usize, shim: bool, names: &mut Names) -> Result<String, String> {
    let of = format!("the export `{}`", export.name);
    let inside = format!("Z_{NAME}{}", mangled(&export.name));
    match &export.item {
        // No host can call it; it is there for the module's tables.
        Item::Function(function) if has_references(function) => Ok(String::new()),
        Item::Function(function) => {
            let name = export_name(&export.name);
            names.claim(&name, of)?;
            let (ty, last) = outer_result(function);
            let head = format!(
                "WASM_EXPORT {ty} wasm_export_{k}({}) __asm__(\"{name}\");\n\
                 {ty} wasm_export_{k}({})",
                parameters(function, "", last, outer),
                parameters(function, "", last, outer),
            );
            let call = format!("{inside}({})", arguments(function, "&wasm_instance", ""));
            let mut out = match function.results.as_slice() {
                [] => format!("{head} {{ {call}; }}\n"),
                [_] => format!("{head} {{ return ({ty}){call}; }}\n"),
                several => {
                    let mut body = format!("    {} all = {call};\n", tuple(several));
                    for (n, result) in several.iter().enumerate() {
                        let (field, ty) = (letter(*result), inner(*result));
                        let _ = writeln!(
                            body,
                            "    __builtin_memcpy((char *)results + {}, &all.{field}{n}, sizeof({ty}));",
                            8 * n
                        );
                    }
                    format!("{head}\n{{\n{body}}}\n")
                }
            };
            if export.name == "_start" && *function == Function::default() {
                let given = if shim {
                    "    wasi_given(argc, argv);\n"
                } else {
                    ""
                };
                let end = if shim { "    wasi_proc_exit(0);\n" } else { "" };
                let _ = writeln!(
                    out,
                    "WASM_EXPORT int __postern_main(int argc, char **argv)\n{{\n{given}    \
                     wasm_export_{k}();\n{end}    return 0;\n}}"
                );
            }
            Ok(out)
        }
        Item::Global(Value::Reference) | Item::Memory | Item::Table(..) => Ok(String::new()),
        Item::Global(value) => {
            let name = identifier(&format!("wasm_global_{}", export.name));
            names.claim(&name, of)?;
            let ty = outer(*value);
            Ok(format!(
                "WASM_EXPORT {ty} {name}(void) {{ return ({ty})*{inside}(&wasm_instance); }}\n"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(export_name("add"), "add");
        assert_eq!(export_name("malloc"), "wasm_malloc");
        assert_eq!(export_name("__postern_init"), "wasm___postern_init");
        assert_eq!(export_name("do it!"), "do_it_");
        assert_eq!(export_name("2d"), "_2d");
        assert_eq!(service_name("env", "log"), "env_log");
        assert_eq!(mangled("do it!Z"), "Z_doZ20itZ21Z5A");
    }
}
