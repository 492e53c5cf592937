//! Declares the verbs of the port, and lets a wrapper intercept all of them at one place.
//!
//! `verbs!` turns one declaration into a trait and into its implementation for [`Intercepted`]
//! and [`Relayed`]. So a new verb needs its declaration here in the port, its implementation in
//! each store and in the model, and its conformance cases. Wrappers need no change.

use std::any::Any;
use std::borrow::Borrow;
use std::pin::Pin;

use crate::{Store, StoreError};

/// A verb of the port, as an interceptor sees it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Verb {
    /// The trait that declares the verb, for example `JobStore`.
    pub store: &'static str,
    pub name: &'static str,
    /// True if the verb can change the database.
    pub writes: bool,
}

/// A wrapper that does something before or after each call of another store.
///
/// [`Intercepted`] makes a store of it. A call costs nothing but [`around`](Self::around): arguments
/// are passed on as they are.
pub trait Intercept: Send + Sync + 'static {
    fn inner(&self) -> &dyn Store;

    /// Runs `call`, which calls `verb` of the inner store once it is awaited.
    fn around<T: Any + Send>(
        &self,
        verb: Verb,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> impl Future<Output = Result<T, StoreError>> + Send;
}

/// The store that calls an interceptor.
#[derive(Debug)]
pub struct Intercepted<I>(pub I);

/// A call of a verb that owns its arguments, so it can run later, in another task.
pub type OwnedCall<S, T> = Box<dyn FnOnce(S) -> OwnedAnswer<T> + Send>;

/// The answer to an [`OwnedCall`].
pub type OwnedAnswer<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>;

/// A wrapper that decides when, and whether, each call of another store runs.
///
/// [`Relayed`] makes a store of it. Each call clones the arguments that it borrows, so this is for
/// tests that inject faults.
pub trait Relay: Send + Sync + 'static {
    type Inner: Store + Clone;

    fn inner(&self) -> &Self::Inner;

    /// Answers a call of `verb`. `call` calls the verb of the store that it is given.
    fn relay<T: Any + Send>(
        &self,
        verb: Verb,
        call: OwnedCall<Self::Inner, T>,
    ) -> impl Future<Output = Result<T, StoreError>> + Send;
}

/// The store that calls a relay.
#[derive(Debug)]
pub struct Relayed<R>(pub R);

/// An argument of a verb, about to be kept for an [`OwnedCall`].
pub(crate) struct Argument<T>(pub T);

/// An argument that the verb borrows. The inherent [`Argument::keep`] is preferred to that of
/// [`KeepOwned`], so borrowed arguments are cloned and owned ones are moved.
pub(crate) struct Cloned<O>(O);

/// An argument that the verb takes over.
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

/// Declares a trait of verbs: `read fn` or `write fn`, the arguments, and what the verb answers if
/// it does not fail. The functions in the braces of the trait answer from memory and are not
/// intercepted.
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
