//! A request that is served by talking to a process: what is the same however one talks.
//!
//! Invariant: a conversation that takes longer than the handler may is dropped, and with it what it
//! holds of the process.

use crate::response_writer::ResponseWriter;
use postern_server::{Answer, BoxFuture, Failure, RequestBody, Variables};
use std::time::Duration;
use tokio::time::timeout;

/// What a program wrote goes to the client when nothing follows for so long.
pub const SOON: Duration = Duration::from_millis(5);

/// A program that is talked to.
pub trait Conversation: Send + Sync {
    /// The time that a request may take.
    fn limit(&self) -> Duration;

    /// Hands a request to the program, and what it answers to `writer`.
    fn converse(
        &self,
        variables: &Variables,
        input: RequestBody,
        writer: &mut ResponseWriter,
    ) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// Serves a request; the result is why the answer was cut off, if it was.
pub fn serve<'a>(
    program: &'a impl Conversation,
    variables: &'a Variables,
    input: RequestBody,
    answer: Answer,
) -> BoxFuture<'a, Option<Failure>> {
    Box::pin(async move {
        let limit = program.limit();
        let mut writer = ResponseWriter::new(answer);
        let converse = program.converse(variables, input, &mut writer);
        let late = |_| Failure::Late(limit, "the process was ended".to_owned());
        let result = timeout(limit, converse).await.map_err(late);
        writer.finish(result.and_then(|result| result)).await
    })
}
