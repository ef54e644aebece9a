//! The server on a wire that is simulated, with a client that is somebody else's, and against bytes
//! that nobody should send.

mod clients;
mod hostile;
mod platform;
mod wire;
