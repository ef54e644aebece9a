//! Against a server in this process: an honest one, one that loses messages and starts anew, one
//! that lies.

mod hostile;
mod lies;
mod parts;
mod server;
