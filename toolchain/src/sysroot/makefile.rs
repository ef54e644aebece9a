//! What a `Makefile.am` of newlib says about its folder: the sources, and those that are compiled
//! once more with other macros.

/// One file to compile.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Unit {
    /// The source's name in its folder.
    pub source: String,
    /// The object's name without its ending.
    pub object: String,
    /// `-D` options of this object.
    pub defines: Vec<String>,
}

/// Reads the sources of every condition: what an extension does not want is excluded by name, not
/// by condition.
pub fn units(text: &str) -> Vec<Unit> {
    let text = text.replace("\\\n", " ");
    let mut units: Vec<Unit> = Vec::new();
    let mut target = "";
    for line in text.lines() {
        if let Some((name, value)) = line
            .split_once('=')
            .filter(|_| !line.starts_with([' ', '\t', '#']))
        {
            let name = name.trim_end_matches('+').trim();
            if !(name.ends_with("SOURCES") || matches!(name, "src" | "fsrc" | "lsrc")) {
                continue;
            }
            for word in value.split_whitespace() {
                let Some(stem) = word.strip_suffix(".c").filter(|stem| !stem.contains('$')) else {
                    continue;
                };
                units.push(Unit {
                    source: word.to_owned(),
                    object: stem.to_owned(),
                    defines: Vec::new(),
                });
            }
        } else if let Some(rule) = line.strip_prefix("$(lpfx)") {
            target = rule.split_once(".$(oext):").map_or("", |(name, _)| name);
        } else if let Some(recipe) = line.trim_start().strip_prefix("$(LIB_COMPILE) ") {
            let words = || recipe.split_whitespace();
            let source = words().find_map(|word| word.strip_prefix("$(srcdir)/"));
            if let Some(source) = source.filter(|_| !target.is_empty()) {
                units.push(Unit {
                    source: source.to_owned(),
                    object: target.to_owned(),
                    defines: words()
                        .filter(|word| word.starts_with("-D"))
                        .map(str::to_owned)
                        .collect(),
                });
            }
        }
    }
    let mut seen = std::collections::HashSet::new();
    units.retain(|unit| seen.insert(unit.object.clone()));
    units
}

#[cfg(test)]
mod tests {
    use super::units;

    #[test]
    fn sources_and_variants() {
        let text = "GENERAL_SOURCES = \\\n\ta.c \\\n\tb.c\nif X\nMORE_SOURCES = $(GENERAL_SOURCES) c.c\nendif\nCHEW = d.def\n\
                    $(lpfx)bi.$(oext): b.c\n\t$(LIB_COMPILE) -DINT -DSTR -c $(srcdir)/b.c -o $@\n";
        let units = units(text);
        let objects: Vec<&str> = units.iter().map(|unit| unit.object.as_str()).collect();
        assert_eq!(objects, ["a", "b", "c", "bi"]);
        assert_eq!(units[3].source, "b.c");
        assert_eq!(units[3].defines, ["-DINT", "-DSTR"]);
    }
}
