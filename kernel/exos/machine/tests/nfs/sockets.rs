//! The host's sockets, as the client wants to have them.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use postern_exos_abi::errno::{self, Errno};
use postern_exos_nfs::record::{self, Records};
use postern_exos_nfs::{Host, Transport};

/// This machine.
pub struct Loopback {
    pub is_stream: bool,
    /// Bytes of a message at most.
    pub limit: usize,
}

pub enum Socket {
    Datagrams(UdpSocket, usize),
    Stream(SocketAddr, TcpStream, Records, usize),
}

fn failed(error: std::io::Error) -> Errno {
    match error.kind() {
        ErrorKind::ConnectionRefused => errno::CONNREFUSED,
        _ => errno::IO,
    }
}

fn stream(address: SocketAddr) -> Result<TcpStream, Errno> {
    let stream = TcpStream::connect(address).map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    Ok(stream)
}

impl Host for Loopback {
    type Transport = Socket;

    fn connect(&mut self, port: u16) -> Result<Socket, Errno> {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if self.is_stream {
            let stream = stream(address)?;
            return Ok(Socket::Stream(
                address,
                stream,
                Records::default(),
                self.limit,
            ));
        }
        let socket = UdpSocket::bind(("127.0.0.1", 0)).map_err(failed)?;
        socket.connect(address).map_err(failed)?;
        Ok(Socket::Datagrams(socket, self.limit))
    }

    fn is_stream(&self) -> bool {
        self.is_stream
    }
}

impl Transport for Socket {
    fn send(&mut self, message: &[u8]) -> Result<(), Errno> {
        match self {
            // Refusals are answers to earlier ones, when the server is not there for a while.
            Socket::Datagrams(socket, _) => drop(socket.send(message)),
            Socket::Stream(_, stream, ..) => {
                let record = [&record::mark(message), message].concat();
                stream.write_all(&record).map_err(failed)?;
            }
        }
        Ok(())
    }

    fn receive(&mut self, wait: u64, message: &mut Vec<u8>) -> Result<bool, Errno> {
        let wait = Some(Duration::from_millis(wait.max(1)));
        let mut bytes = [0; 65536];
        match self {
            Socket::Datagrams(socket, _) => {
                socket.set_read_timeout(wait).map_err(failed)?;
                match socket.recv(&mut bytes) {
                    Ok(count) => {
                        message.clear();
                        message.extend(&bytes[..count]);
                        Ok(true)
                    }
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                        std::thread::sleep(Duration::from_millis(200));
                        Ok(false)
                    }
                    Err(_) => Ok(false),
                }
            }
            Socket::Stream(_, stream, records, _) => {
                stream.set_read_timeout(wait).map_err(failed)?;
                loop {
                    if records.take(message).map_err(|_| errno::IO)? {
                        return Ok(true);
                    }
                    match stream.read(&mut bytes) {
                        Ok(0) => return Err(errno::CONNRESET),
                        Ok(count) => records.put(&bytes[..count]),
                        Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                        Err(error) => return Err(failed(error)),
                    }
                }
            }
        }
    }

    fn now(&mut self) -> u64 {
        use std::time::SystemTime;
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        since.unwrap_or_default().as_millis() as u64
    }

    fn limit(&self) -> usize {
        match self {
            Socket::Datagrams(_, limit) | Socket::Stream(.., limit) => *limit,
        }
    }

    fn patience(&self) -> Option<u64> {
        matches!(self, Socket::Datagrams(..)).then_some(700)
    }

    fn rest(&mut self, wait: u64) {
        std::thread::sleep(Duration::from_millis(wait));
    }

    fn reconnect(&mut self, _: u64) -> Result<(), Errno> {
        if let Socket::Stream(address, connection, records, _) = self {
            *connection = stream(*address)?;
            records.clear();
        }
        Ok(())
    }
}
