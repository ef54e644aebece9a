//! The comments in GCC's tests that say with which options they are compiled.

/// The options of `dg-options` and `dg-additional-options` that hold for x86-64 Linux.
pub fn options(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for line in text.lines() {
        for directive in ["dg-options", "dg-additional-options"] {
            let Some((_, rest)) = line.split_once(directive) else {
                continue;
            };
            let mut parts = rest.split('"');
            let (Some(_), Some(flags), Some(selector)) = (parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            if holds(selector) {
                all.extend(flags.split_whitespace().map(str::to_owned));
            }
        }
    }
    all
}

/// Whether the test says that it is to be run on x86-64 Linux.
pub fn runs(text: &str) -> bool {
    text.lines()
        .filter_map(|line| line.split_once("dg-do run"))
        .any(|(_, selector)| {
            let elsewhere = ["arm", "powerpc", "ia32 }", "darwin"];
            holds(selector) || !elsewhere.iter().any(|e| selector.contains(e))
        })
}

/// The names of `dg-additional-sources`.
pub fn additional_sources(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.split_once("dg-additional-sources"))
        .flat_map(|(_, rest)| {
            rest.split(['}', '*'])
                .next()
                .unwrap_or_default()
                .split_whitespace()
        })
        .map(|name| name.trim_matches('"').to_owned())
        .collect()
}

/// Whether a selector like ` { target i?86-*-* x86_64-*-* } } */` means us.
fn holds(selector: &str) -> bool {
    match selector.split_once("target") {
        None => true,
        Some((_, what)) => {
            what.contains("x86_64") && !what.contains("ia32") || what.contains("fpic")
        }
    }
}

/// The options that a `.x` file adds for every target: those in no conditional block.
pub fn additional_flags(script: &str) -> Vec<String> {
    let (mut depth, mut all) = (0usize, Vec::new());
    for line in script.lines() {
        let line = line.trim();
        if line.starts_with('#') {
            continue;
        }
        if depth == 0
            && let Some(rest) = line
                .strip_prefix("lappend additional_flags")
                .or_else(|| line.strip_prefix("set additional_flags"))
        {
            all.extend(
                rest.split_whitespace()
                    .map(|flag| flag.trim_matches(['"', '{', '}']))
                    .filter(|flag| flag.starts_with('-'))
                    .map(str::to_owned),
            );
        }
        depth += line.matches('{').count();
        depth = depth.saturating_sub(line.matches('}').count());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors() {
        let text = r#"
/* { dg-options "-fwrapv -O2" } */
/* { dg-additional-options "-mno-mmx" { target { x86_64-*-* i?86-*-* } } } */
/* { dg-options "-mtune=i686" { target { { i?86-*-* x86_64-*-* } && ia32 } } } */
/* { dg-additional-options "-DSIGNAL_SUPPRESS" { target { ! signal } } } */
/* { dg-options { "-std=c99" } } */
"#;
        assert_eq!(options(text), ["-fwrapv", "-O2", "-mno-mmx", "-std=c99"]);
    }

    #[test]
    fn programs() {
        assert!(runs("/* { dg-do run } */"));
        assert!(runs("// { dg-do run { target c++11 } }"));
        assert!(!runs("/* { dg-do run { target arm*-*-* } } */"));
        assert!(!runs("/* { dg-do compile } */"));
        let text = "/* { dg-additional-sources \"a-2.c\" } */\n/* { dg-additional-sources b.c } */";
        assert_eq!(additional_sources(text), ["a-2.c", "b.c"]);
    }

    #[test]
    fn scripts() {
        let text = "if { [check_effective_target_newlib] } {\n    lappend additional_flags \"-Wl,-u,f\"\n}\n\
                    lappend additional_flags \"-fno-trapping-math\"\nreturn 0\n";
        assert_eq!(additional_flags(text), ["-fno-trapping-math"]);
    }
}
