//! Defines the macro that declares store operations (verbs), and wrappers that intercept all of
//! them in one place.
//!
//! `verbs!` turns one declaration into a trait and its implementations for [`Intercepted`] and
//! [`Relayed`]. A new store operation needs its declaration, its implementation in each store and
//! in the in-memory model, and its conformance cases. Wrappers need no change for a new store
//! operation.

use std::any::Any;
use std::borrow::Borrow;
use std::pin::Pin;

use crate::{Store, StoreError};

/// Describes a store operation (verb) to an interceptor.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Verb {
    /// The trait that declares the store operation, for example `JobStore`.
    pub store: &'static str,
    pub name: &'static str,
    /// True if the store operation can change the database.
    pub writes: bool,
}

/// A wrapper that runs code before or after each call of another store.
///
/// [`Intercepted`] turns an interceptor into a store. An intercepted call has no overhead besides
/// [`around`](Self::around), because its arguments are not cloned.
pub trait Intercept: Send + Sync + 'static {
    fn inner(&self) -> &dyn Store;

    /// Runs `call`, a future that calls `verb` of the inner store.
    fn around<T: Any + Send>(
        &self,
        verb: Verb,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> impl Future<Output = Result<T, StoreError>> + Send;
}

/// A store that passes each call through the interceptor `I`.
#[derive(Debug)]
pub struct Intercepted<I>(pub I);

/// A call of a store operation that owns its arguments, so that it can run later in another task.
pub type OwnedCall<S, T> = Box<dyn FnOnce(S) -> OwnedAnswer<T> + Send>;

pub type OwnedAnswer<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>;

/// A wrapper that decides when, and whether, each call of another store runs.
///
/// [`Relayed`] turns a relay into a store. Each relayed call clones its borrowed arguments, so use
/// relays only in tests that inject faults.
pub trait Relay: Send + Sync + 'static {
    type Inner: Store + Clone;

    fn inner(&self) -> &Self::Inner;

    /// Answers a call of `verb`. `call` takes a store and runs the operation on that store.
    fn relay<T: Any + Send>(
        &self,
        verb: Verb,
        call: OwnedCall<Self::Inner, T>,
    ) -> impl Future<Output = Result<T, StoreError>> + Send;
}

/// A store that passes each call through the relay `R`.
#[derive(Debug)]
pub struct Relayed<R>(pub R);

/// An argument of a store operation before it is cloned or moved into an [`OwnedCall`].
pub(crate) struct Argument<T>(pub T);

/// A clone of an argument that the store operation borrows. Rust prefers the inherent method
/// [`Argument::keep`] to the trait method of [`KeepOwned`], so borrowed arguments are cloned and
/// owned arguments are moved.
pub(crate) struct Cloned<O>(O);

/// An argument that was moved, because the store operation takes ownership of it.
pub(crate) struct Moved<T>(T);

impl<T: ToOwned + ?Sized> Argument<&T> {
    pub(crate) fn keep(self) -> Cloned<T::Owned> {
        Cloned(self.0.to_owned())
    }
}

pub(crate) trait KeepOwned {
    type Kept;

    fn keep(self) -> Self::Kept;
}

impl<T> KeepOwned for Argument<T> {
    type Kept = Moved<T>;

    fn keep(self) -> Moved<T> {
        Moved(self.0)
    }
}

impl<O> Cloned<O> {
    pub(crate) fn pass<B: ?Sized>(&self) -> &B
    where
        O: Borrow<B>,
    {
        self.0.borrow()
    }
}

impl<T> Moved<T> {
    pub(crate) fn pass(self) -> T {
        self.0
    }
}

/// Declares a trait of store operations. Each store operation has `read fn` or `write fn`, its
/// arguments, and the type that it returns on success. Functions inside the braces of the trait
/// answer from memory and are not intercepted.
macro_rules! verbs {
    (
        $(#[$about:meta])*
        trait $port:ident $(: $($parent:path),+)? {
            $($(#[$of_accessor:meta])* fn $accessor:ident() -> $value:ty;)*
        }
        $(
            $(#[$contract:meta])*
            $kind:ident fn $verb:ident($($name:ident: $of:ty),* $(,)?) -> $answer:ty;
        )*
    ) => {
        use $crate::verbs::KeepOwned as _;

        $(#[$about])*
        #[async_trait::async_trait]
        pub trait $port: Send + Sync + 'static $($(+ $parent)+)? {
            $($(#[$of_accessor])* fn $accessor(&self) -> $value;)*
            $(
                $(#[$contract])*
                async fn $verb(&self, $($name: $of),*) -> Result<$answer, $crate::StoreError>;
            )*
        }

        #[async_trait::async_trait]
        impl<I: $crate::verbs::Intercept> $port for $crate::verbs::Intercepted<I> {
            $(fn $accessor(&self) -> $value {
                self.0.inner().$accessor()
            })*
            $(async fn $verb(&self, $($name: $of),*) -> Result<$answer, $crate::StoreError> {
                let verb = $crate::verbs::verb!($port $kind $verb);
                self.0.around(verb, self.0.inner().$verb($($name),*)).await
            })*
        }

        #[async_trait::async_trait]
        impl<R: $crate::verbs::Relay> $port for $crate::verbs::Relayed<R> {
            $(fn $accessor(&self) -> $value {
                self.0.inner().$accessor()
            })*
            $(async fn $verb(&self, $($name: $of),*) -> Result<$answer, $crate::StoreError> {
                let verb = $crate::verbs::verb!($port $kind $verb);
                $(let $name = $crate::verbs::Argument($name).keep();)*
                let call = move |store: R::Inner| -> $crate::verbs::OwnedAnswer<$answer> {
                    Box::pin(async move { store.$verb($($name.pass()),*).await })
                };
                self.0.relay(verb, Box::new(call)).await
            })*
        }
    };
}

macro_rules! verb {
    ($port:ident read $verb:ident) => {
        $crate::verbs::Verb { store: stringify!($port), name: stringify!($verb), writes: false }
    };
    ($port:ident write $verb:ident) => {
        $crate::verbs::Verb { store: stringify!($port), name: stringify!($verb), writes: true }
    };
}

pub(crate) use {verb, verbs};
