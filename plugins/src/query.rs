//! The query of a request that passes a picture through plugins:
//! `through=quantise(16),roi(10,10,100,80)&format=png`.

use crate::area::ARGUMENTS;
use crate::picture::Format;
use crate::problem::Problem;
use crate::source::is_name;
use http::StatusCode;
use postern_server::unescaped;

/// Most plugins of one request.
const STEPS: usize = 16;

/// A plugin to pass, and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The plugin.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<i32>,
}

/// What a query asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query {
    /// The plugins, in their order.
    pub steps: Vec<Step>,
    /// What the answer shall be, if not what the picture was.
    pub format: Option<Format>,
}

/// Whether a query names plugins at all.
pub fn asks(query: Option<&str>) -> bool {
    let mut parts = query.unwrap_or_default().split('&');
    parts.any(|part| part.starts_with("through=") || part.starts_with("format="))
}

fn wrong(text: impl Into<String>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, text)
}

impl Query {
    /// Reads a query. What it says besides is nobody's here.
    ///
    /// # Errors
    /// It makes no sense.
    pub fn parse(query: Option<&str>) -> Result<Query, Problem> {
        let mut through = Query::default();
        for part in query.unwrap_or_default().split('&') {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            match key {
                "through" => {
                    let value = unescaped(value.as_bytes());
                    let value = value.and_then(|bytes| String::from_utf8(bytes).ok());
                    let value = value.ok_or_else(|| wrong("`through` has wrong escapes"))?;
                    steps(&value, &mut through.steps)?;
                }
                "format" => {
                    let known = Format::named(value);
                    let text = "`format` must be png, jpeg or ppm";
                    through.format = Some(known.ok_or_else(|| wrong(text))?);
                }
                _ => {}
            }
        }
        Ok(through)
    }
}

fn steps(mut text: &str, steps: &mut Vec<Step>) -> Result<(), Problem> {
    while !text.is_empty() {
        let end = text.find([',', '(']).unwrap_or(text.len());
        let (name, mut rest) = text.split_at(end);
        if !is_name(name) {
            let text = "`through` must be names of plugins with commas between, like gray,scale(2)";
            return Err(wrong(text));
        }
        let mut arguments = Vec::new();
        if let Some(inside) = rest.strip_prefix('(') {
            let text = format!("`{name}(` must go on with whole numbers and `)`");
            let (list, behind) = inside.split_once(')').ok_or_else(|| wrong(text.clone()))?;
            for number in list.split(',').filter(|_| !list.is_empty()) {
                arguments.push(number.trim().parse().map_err(|_| wrong(text.clone()))?);
            }
            rest = behind;
        }
        if arguments.len() > ARGUMENTS {
            return Err(wrong(format!(
                "`{name}` can have {ARGUMENTS} arguments at most"
            )));
        }
        if steps.len() == STEPS {
            return Err(wrong(format!("at most {STEPS} plugins at a time")));
        }
        steps.push(Step {
            name: name.to_owned(),
            arguments,
        });
        text = match rest.strip_prefix(',') {
            Some(rest) if !rest.is_empty() => rest,
            None if rest.is_empty() => rest,
            _ => {
                return Err(wrong(format!(
                    "after `{name}` must be a comma and a name, or nothing"
                )));
            }
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries() {
        let through =
            Query::parse(Some("x=1&through=gray,roi(1,-2,%203,4),a-b()&format=png")).unwrap();
        let step = |name: &str, arguments: &[i32]| Step {
            name: name.to_owned(),
            arguments: arguments.to_vec(),
        };
        assert_eq!(
            through.steps,
            [
                step("gray", &[]),
                step("roi", &[1, -2, 3, 4]),
                step("a-b", &[])
            ]
        );
        assert_eq!(through.format, Some(Format::Png));
        assert_eq!(Query::parse(None).unwrap(), Query::default());
        assert!(asks(Some("a&through=")) && !asks(Some("athrough=b")) && !asks(None));
        let many = format!("through={}", ["a"; STEPS + 1].join(","));
        for query in [
            "through=,",
            "through=a,",
            "through=a,,b",
            "through=a(",
            "through=a(b)",
            "through=a(1.5)",
            "through=a(1,)",
            "through=a(99999999999)",
            "through=a(1)b",
            "through=a(1,2,3,4,5,6,7,8,9)",
            "through=../a",
            "through=%zz",
            "format=gif",
            &many,
        ] {
            assert!(Query::parse(Some(query)).is_err(), "{query}");
        }
    }
}
