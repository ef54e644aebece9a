//! A question is put to a decider.

use super::{Decider, DeciderKind, Deciding, DecisionError, Question};
use crate::service::Caller;
use crate::system::Verdict;

impl Decider {
    /// Asks. `texts` are the names in the question, each with a NUL.
    #[inline]
    pub(crate) fn decide(
        &self,
        caller: &Caller<'_>,
        question: &Question<'_>,
        texts: &[u8],
        deciding: &Deciding,
    ) -> Verdict {
        match &*self.0 {
            DeciderKind::Closure(decide) => decide(caller, question),
            DeciderKind::Module { ask, .. } => {
                ask(question, texts).unwrap_or_else(|error| failed(deciding, question, error))
            }
        }
    }
}

#[cold]
fn failed(deciding: &Deciding, question: &Question<'_>, error: DecisionError) -> Verdict {
    tracing::warn!(domain = question.domain, %error, "denied, for want of a decision");
    deciding.failed(Some(error));
    Verdict::Deny(libc::EPERM)
}
