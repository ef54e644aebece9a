//! Programs do under an agent what they do without.

mod agents;
mod attacks;
mod debian;
mod enforce;
mod netstack;
mod probe;
mod sites;
mod support;
mod trace;
mod unserved;
mod wrong;
