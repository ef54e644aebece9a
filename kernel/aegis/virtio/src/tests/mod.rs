//! Queues and negotiation with devices that are honest, and with devices that are not.

mod hostile;
mod negotiation;
mod queue;
