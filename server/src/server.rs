//! The server: listeners, connections, and an end in good order.

use crate::admission::{ClientLimit, ClientPermit};
use crate::config::Site;
use crate::fast_path::{self, Next};
use crate::files::Files;
use crate::half_closed::{Answering, HalfClosed};
use crate::handler::HandlerError;
use crate::log::Log;
use crate::program::BuildFolder;
use crate::reload;
use crate::rewound::Rewound;
use crate::router::Router;
use crate::tls::{self, TlsError};
use crate::variables::Peers;
use crate::write_timeout::WriteTimeout;
use bytes::BytesMut;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// How long a connection that is being closed may go on sending.
const LINGER: Duration = Duration::from_secs(1);

/// The server does not start, or cannot go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A handler cannot be made.
    #[error("handler {0}")]
    Handler(#[from] HandlerError),
    /// Certificate or key.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The address is taken, or not this machine's.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The operators' listener is where the site's is.
    #[error("operations.listen: {0} is where the site listens; take another port")]
    Twice(SocketAddr),
    /// Anything else of the system.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why not.
        source: io::Error,
    },
}

fn system(what: &'static str) -> impl Fn(io::Error) -> ServeError {
    move |source| ServeError::System { what, source }
}

/// A site whose handlers are built and loaded, and which listens.
pub struct Server {
    site: Site,
    router: Arc<Router>,
    log: Arc<Log>,
    listener: TcpListener,
    operations: Option<TcpListener>,
    tls: Option<TlsAcceptor>,
}

/// What connections have in common.
struct Common {
    router: Arc<Router>,
    site: Site,
    tls: Option<TlsAcceptor>,
    ending: watch::Receiver<bool>,
    /// How many each address has.
    clients: Arc<ClientLimit>,
    /// Whether they are the operators'.
    operators: bool,
}

impl Server {
    /// Builds and loads what a site names, and listens. Connections wait until [`Server::run`].
    ///
    /// # Errors
    /// See [`ServeError`].
    pub fn new(site: Site) -> Result<Server, ServeError> {
        let log = Log::open(&site.access_log, &site.error_log).map_err(system("open a log"))?;
        Server::with_log(site, Arc::new(log))
    }

    /// The same with logs of the host's own.
    ///
    /// # Errors
    /// See [`ServeError`].
    pub fn with_log(site: Site, log: Arc<Log>) -> Result<Server, ServeError> {
        let (router, tls) = parts(&site, &log)?;
        Ok(Server {
            listener: listen(site.listen)?,
            operations: site.operations.map(listen).transpose()?,
            site,
            router,
            log,
            tls,
        })
    }

    /// Its logs.
    pub fn log(&self) -> &Arc<Log> {
        &self.log
    }

    /// Where it listens, with the port that the kernel chose if the site says 0.
    ///
    /// # Errors
    /// The system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Where the operators' listener is, if it is another.
    pub fn operations_address(&self) -> Option<SocketAddr> {
        self.operations.as_ref()?.local_addr().ok()
    }

    /// Serves until `end` is ready, then answers what was asked before, for a bounded time.
    ///
    /// # Errors
    /// The system's threads cannot be made.
    pub fn run(self, end: impl Future<Output = ()>) -> Result<(), ServeError> {
        let instances: usize = self
            .site
            .handlers
            .iter()
            .map(|handler| handler.instances)
            .sum();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(self.site.workers)
            .max_blocking_threads(instances + 64)
            .thread_name("postern-serve")
            .enable_all()
            .build()
            .map_err(system("make threads"))?;
        let shutdown = self.site.limits.shutdown;
        let result = runtime.block_on(self.serve(end));
        // What is inside a program now is beyond its time.
        runtime.shutdown_timeout(shutdown.min(Duration::from_secs(1)));
        result
    }

    async fn serve(self, end: impl Future<Output = ()>) -> Result<(), ServeError> {
        let (tell, ending) = watch::channel(false);
        let most = self.site.limits.connections;
        let places = Arc::new(Semaphore::new(most));
        let shutdown = self.site.limits.shutdown;
        let common = |tls, operators| {
            Arc::new(Common {
                router: self.router.clone(),
                site: self.site.clone(),
                tls,
                ending: ending.clone(),
                clients: Arc::new(ClientLimit::new(self.site.limits.connections_per_client)),
                operators,
            })
        };
        let listener =
            tokio::net::TcpListener::from_std(self.listener).map_err(system("listen"))?;
        let mut accepting = vec![tokio::spawn(accept(
            listener,
            common(self.tls.clone(), false),
            places.clone(),
        ))];
        if let Some(listener) = self.operations {
            let listener = tokio::net::TcpListener::from_std(listener).map_err(system("listen"))?;
            // Operators get in when all other places are taken.
            let places = Arc::new(Semaphore::new(16));
            accepting.push(tokio::spawn(accept(listener, common(None, true), places)));
        }
        let found = self.site.discovered.then(|| self.site.clone());
        let watching = tokio::spawn(reload::watch(self.router.clone(), self.log.clone(), found));
        end.await;
        let _ = tell.send(true);
        self.router.status.end();
        for task in accepting {
            task.abort();
        }
        watching.abort();
        let all = u32::try_from(most).unwrap_or(u32::MAX);
        let _ = timeout(shutdown, places.acquire_many(all)).await;
        self.log.flush();
        Ok(())
    }
}

/// Does all that a server does before it listens.
///
/// # Errors
/// See [`ServeError`].
pub fn check(site: &Site) -> Result<(), ServeError> {
    // Those that it would write can be written.
    Log::open(&site.access_log, &site.error_log).map_err(system("open a log"))?;
    let log = Log::open("".as_ref(), "-".as_ref()).map_err(system("open a log"))?;
    parts(site, &Arc::new(log)).map(|_| ())
}

fn parts(site: &Site, log: &Arc<Log>) -> Result<(Arc<Router>, Option<TlsAcceptor>), ServeError> {
    if let Some(operations) = site.operations.filter(|other| same(site.listen, *other)) {
        return Err(ServeError::Twice(operations));
    }
    let tls = site.tls.as_ref().map(tls::acceptor).transpose()?;
    let builds = BuildFolder::new().map_err(system("make a folder for programs"))?;
    let files = site.public.as_deref().map(Files::new).transpose();
    let files = files.map_err(system("open the folder `public`"))?;
    let wanted = site.handlers.iter().any(|handler| handler.run.is_process());
    let processes = site.components.processes.filter(|_| wanted);
    let processes = processes.map(|start| start()).transpose();
    let processes = processes.map_err(system("make a thread"))?;
    let router = Router::new(site, files, builds, processes, log)?;
    Ok((Arc::new(router), tls))
}

/// Whether two listeners would get in each other's way.
fn same(a: SocketAddr, b: SocketAddr) -> bool {
    let all = a.ip().is_unspecified() || b.ip().is_unspecified();
    a.port() != 0 && a.port() == b.port() && (a.ip() == b.ip() || all)
}

fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    let error = |source| ServeError::Listen { address, source };
    let listener = TcpListener::bind(address).map_err(error)?;
    listener.set_nonblocking(true).map_err(error)?;
    Ok(listener)
}

/// Takes connections, as many as there are places for.
async fn accept(listener: tokio::net::TcpListener, common: Arc<Common>, places: Arc<Semaphore>) {
    while let Ok(place) = places.clone().acquire_owned().await {
        match listener.accept().await {
            Ok((stream, client)) => match common.clients.enter(client.ip()) {
                Ok(share) => drop(tokio::spawn(connection(
                    stream,
                    client,
                    common.clone(),
                    (place, share),
                ))),
                // Nothing is said to who has enough: it would have to be listened to first.
                Err(_) => drop(common.router.refused.fetch_add(1, Ordering::Relaxed)),
            },
            // No descriptors left, say: later there may be.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn connection(
    stream: TcpStream,
    client: SocketAddr,
    common: Arc<Common>,
    _place: (OwnedSemaphorePermit, ClientPermit),
) {
    let Ok(server) = stream.local_addr() else {
        return;
    };
    let _ = stream.set_nodelay(true);
    let peers = Peers {
        client,
        server,
        tls: common.tls.is_some(),
    };
    let _counted = Counted::new(&common.router.connections);
    match &common.tls {
        None => plain(stream, peers, &common).await,
        Some(tls) => {
            // Who does not manage to greet is nobody to complain about.
            if let Ok(Ok(stream)) = timeout(common.site.limits.header, tls.accept(stream)).await {
                talk(stream, peers, &common).await;
            }
        }
    }
}

/// One more, until this is dropped.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(all: &'a AtomicUsize) -> Counted<'a> {
        all.fetch_add(1, Ordering::Relaxed);
        Counted(all)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection that is not encrypted.
async fn plain(mut stream: TcpStream, peers: Peers, common: &Common) {
    let (limits, ending) = (&common.site.limits, &common.ending);
    let next = match common.operators {
        true => Next::HandOver(BytesMut::new()),
        false => fast_path::serve(&mut stream, &common.router, peers, limits, ending).await,
    };
    match next {
        Next::HandOver(first) => talk(Rewound::new(first, stream), peers, common).await,
        Next::Close => linger(stream).await,
    }
}

async fn talk(stream: impl AsyncRead + AsyncWrite + Unpin, peers: Peers, common: &Common) {
    let limits = &common.site.limits;
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header)
        .max_buf_size(limits.header_bytes);
    if limits.headers != 100 {
        builder.max_headers(limits.headers);
    }
    let answering = Answering::default();
    let service = service_fn(|request: Request<Incoming>| {
        // Before anything else is read.
        let due = answering.begin();
        Box::pin(async move {
            let answer = match common.operators {
                true => common.router.operate(&request),
                false => common.router.answer(request, peers).await,
            };
            Ok::<_, Infallible>(answer.map(|body| body.until(due)))
        })
    });
    let stream = HalfClosed::new(stream, answering.clone());
    let stream = TokioIo::new(WriteTimeout::new(stream, limits.send));
    let mut connection = builder.serve_connection(stream, service);
    let mut ending = common.ending.clone();
    let done = poll_fn(|context| connection.poll_without_shutdown(context));
    let done = tokio::select! {
        // Who has asked already is answered.
        biased;
        // What clients do wrong is told to them, and no matter for the log.
        done = done => Some(done),
        _ = ending.wait_for(|ending| *ending) => None,
    };
    if done.is_none() {
        Pin::new(&mut connection).graceful_shutdown();
        let _ = poll_fn(|context| connection.poll_without_shutdown(context)).await;
    }
    linger(connection.into_parts().io.into_inner()).await;
}

/// Closes a connection so that its other side gets the answer, even if it is still sending what
/// nobody reads: a socket that is closed with bytes unread takes back what it sent.
async fn linger(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let close = async {
        stream.shutdown().await?;
        let mut bytes = vec![0; 16 << 10];
        while stream.read(&mut bytes).await? > 0 {}
        io::Result::Ok(())
    };
    let _ = timeout(LINGER, close).await;
}

/// What a process is told by signals: it opens its log files again at SIGUSR1 and SIGHUP. Ready at
/// SIGINT and SIGTERM: it shall end.
pub async fn signals(log: Arc<Log>) {
    use tokio::signal::unix::{SignalKind, signal};
    let kinds = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::user_defined1(),
        SignalKind::hangup(),
    ];
    let [
        Ok(mut interrupt),
        Ok(mut terminate),
        Ok(mut user),
        Ok(mut hangup),
    ] = kinds.map(signal)
    else {
        return std::future::pending().await;
    };
    loop {
        tokio::select! {
            _ = interrupt.recv() => return,
            _ = terminate.recv() => return,
            _ = user.recv() => log.reopen(),
            _ = hangup.recv() => log.reopen(),
        }
    }
}
