//! What goes wrong with plugins, as `application/problem+json` (RFC 9457).

use crate::picture::PictureError;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use postern::{CreateError, Fault, NamespaceError};
use postern_ecode::Errors;
use postern_server::{Body, Failure, FailureId};
use serde_json::{Map, Value, json};

/// Why a client gets no picture, or cannot have a plugin.
#[derive(Debug, Clone)]
pub struct Problem {
    status: StatusCode,
    detail: String,
    /// For the log: also what the client is not told.
    id: Option<FailureId>,
    more: Map<String, Value>,
    retry: Option<u64>,
    allow: Option<&'static str>,
    room: bool,
}

impl Problem {
    /// One with a status and what there is to say.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Problem {
        Problem {
            status,
            detail: detail.into(),
            id: None,
            more: Map::new(),
            retry: None,
            allow: None,
            room: false,
        }
    }

    /// Nothing of this name.
    pub fn missing(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, detail)
    }

    /// Another method.
    pub fn method(allow: &'static str) -> Problem {
        let mut problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, format!("only {allow}"));
        problem.allow = Some(allow);
        problem
    }

    /// A quota is used up.
    pub fn quota(detail: impl Into<String>) -> Problem {
        Problem {
            retry: Some(1),
            ..Problem::new(StatusCode::TOO_MANY_REQUESTS, detail)
        }
    }

    /// With a number that stands in the log.
    pub fn with_id(mut self) -> Problem {
        self.id = Some(FailureId::new());
        self
    }

    /// A plugin that broke a rule.
    pub fn fault(status: StatusCode, plugin: &str, fault: &Fault) -> Problem {
        let at = fault.place();
        let (function, line, column) = place(&at);
        let mut problem = Problem::new(status, format!("{plugin}: {fault}")).with_id();
        let message = match &fault.message {
            Some(message) => format!("{}: {message}", fault.kind),
            None => fault.kind.to_string(),
        };
        let fault = json!({
            "kind": fault.kind.name(),
            "message": message,
            "plugin": plugin,
            "function": function,
            "source": plugin,
            "line": line,
            "column": column,
            "address": fault.address.map(|address| address.to_string()),
        });
        problem.more.insert("fault".to_owned(), fault);
        problem
    }

    /// A source that is wrong.
    pub fn source(errors: &Errors) -> Problem {
        let count = errors.list.len();
        let first = errors.list.first();
        let first = first.map_or_else(String::new, |e| {
            format!(": {}:{}: {}", e.line, e.column, e.message)
        });
        let s = if count == 1 { "" } else { "s" };
        let mut problem = Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            format!("the source has {count} error{s}{first}"),
        );
        let list = errors.list.iter().map(|error| {
            json!({
                "line": error.line,
                "column": error.column,
                "end_column": error.column + error.length,
                "severity": "error",
                "message": error.message,
                "remedy": error.help,
            })
        });
        problem
            .more
            .insert("diagnostics".to_owned(), list.collect());
        problem
    }

    /// The number in the log, if there is one.
    pub fn id(&self) -> Option<FailureId> {
        self.id
    }

    /// Whether a plugin broke a rule.
    pub fn is_fault(&self) -> bool {
        self.more.contains_key("fault")
    }

    /// Whether it was ended by its deadline.
    pub fn is_late(&self) -> bool {
        self.status == StatusCode::GATEWAY_TIMEOUT
    }

    /// What is said.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The answer.
    pub fn response(&self) -> Response<Body> {
        let mut map = self.more.clone();
        let title = self.status.canonical_reason().unwrap_or_default();
        map.insert("title".to_owned(), title.into());
        map.insert("status".to_owned(), self.status.as_u16().into());
        map.insert("detail".to_owned(), self.detail.clone().into());
        if let Some(id) = self.id {
            map.insert("id".to_owned(), id.to_string().into());
        }
        let mut response = Response::new(Body::whole(format!("{}\n", Value::Object(map))));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if let Some(seconds) = self.retry {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if let Some(allow) = self.allow {
            headers.insert(ALLOW, HeaderValue::from_static(allow));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Function, line and column of a place: `function at unit:line` in a namespace, `function+0x10
/// (file:line:column)` in an image.
fn place(text: &str) -> (Option<&str>, Option<u32>, Option<u32>) {
    if let Some((function, rest)) = text.split_once(" at ").or_else(|| text.split_once(" of ")) {
        let line = rest.rsplit(':').next().and_then(|line| line.parse().ok());
        return (Some(function), line, None);
    }
    let function = text
        .split(['+', ' '])
        .next()
        .filter(|name| !name.is_empty());
    let at = text
        .rsplit_once('(')
        .map_or("", |(_, at)| at.trim_end_matches(')'));
    let mut words = at.rsplitn(3, ':');
    let column = words.next().and_then(|column| column.parse().ok());
    let line = words.next().and_then(|line| line.parse().ok());
    (function, line, column.filter(|_| line.is_some()))
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Problem {
        let mut problem = Problem::new(failure.status(), failure.to_string());
        if matches!(
            failure,
            Failure::Full(_) | Failure::Busy(_) | Failure::Exhausted(_) | Failure::Ending
        ) {
            problem.retry = Some(1);
        }
        problem
    }
}

impl From<PictureError> for Problem {
    fn from(error: PictureError) -> Problem {
        let status = match &error {
            PictureError::Format => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            PictureError::Large(..) => StatusCode::PAYLOAD_TOO_LARGE,
            PictureError::Broken(_) => StatusCode::UNPROCESSABLE_ENTITY,
            PictureError::Encode(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Problem::new(status, error.to_string())
    }
}

impl From<CreateError> for Problem {
    fn from(error: CreateError) -> Problem {
        match &error {
            CreateError::Source(errors) => Problem::source(errors),
            CreateError::Signature { .. } | CreateError::Defined { .. } => {
                Problem::new(StatusCode::CONFLICT, error.to_string())
            }
            CreateError::Room { .. } => Problem::quota(error.to_string()),
            CreateError::Map(_) | CreateError::Barrier(_) => Problem::room(error.to_string()),
            _ => Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()),
        }
    }
}

impl From<NamespaceError> for Problem {
    fn from(error: NamespaceError) -> Problem {
        use postern::InstantiateError;
        match &error {
            NamespaceError::Instantiate(inner)
                if matches!(
                    inner.cause(),
                    InstantiateError::Unresolved(_)
                        | InstantiateError::Signature { .. }
                        | InstantiateError::Limits(_)
                        | InstantiateError::Wish { .. }
                        | InstantiateError::Initialisation(_)
                ) =>
            {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string())
            }
            NamespaceError::Services(_) => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string())
            }
            _ => Problem::room(error.to_string()),
        }
    }
}

impl Problem {
    /// Later it may go.
    pub fn busy(detail: impl Into<String>) -> Problem {
        Problem {
            retry: Some(1),
            ..Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
        }
    }

    /// Its turn did not come.
    pub fn waited(failure: Failure) -> Problem {
        match failure {
            Failure::Full(waiting) => Problem::busy(format!("{waiting} pictures wait already")),
            Failure::Busy(time) => {
                Problem::busy(format!("all were busy with other pictures for {time:?}"))
            }
            other => other.into(),
        }
    }

    /// Whether others have the room that this needs.
    pub fn is_room(&self) -> bool {
        self.room
    }

    /// The system has no more room. The text has the remedy, for the log, too.
    pub fn room(detail: impl Into<String>) -> Problem {
        Problem {
            retry: Some(1),
            room: true,
            ..Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).with_id()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn places() {
        assert_eq!(place("gray at gray:12"), (Some("gray"), Some(12), None));
        assert_eq!(place("gray of unit"), (Some("gray"), None, None));
        assert_eq!(place(""), (None, None, None));
        let image = "built+0x1c (/tmp/a.c:12:10)";
        assert_eq!(place(image), (Some("built"), Some(12), Some(10)));
        assert_eq!(place("built+0x1c"), (Some("built"), None, None));
    }
}
