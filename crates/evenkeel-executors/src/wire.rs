//! What a body and its node tell each other while it runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenkeel_core::Progress;
use evenkeel_core::secret::Masks;
use tokio::sync::Notify;

use crate::tail::Tail;

/// At most so many bytes of a checkpoint are kept; a larger one is refused.
pub const CHECKPOINT_BYTES_MAX: usize = 512 * 1024;

/// A line between a body and its node. The body says how far it has come, what it prints and what
/// the next attempt should know; the node passes on signs of life from afar. Cheap to clone, and
/// nothing waits: the node looks now and then, and only the latest counts.
#[derive(Clone, Debug, Default)]
pub struct Wire(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    said: Mutex<Said>,
    heard: Notify,
}

/// What the body has said and the node not yet taken.
#[derive(Default)]
struct Said {
    progress: Progress,
    log: Tail,
    /// Until the node says that it is stored.
    checkpoint: Option<Vec<u8>>,
    /// Checkpoints so far.
    version: u64,
    is_new: New,
    was_taken: bool,
    /// Values of secrets that the attempt was given.
    masks: Masks,
}

#[derive(Copy, Clone, Default, PartialEq, Eq)]
struct New {
    progress: bool,
    log: bool,
    checkpoint: bool,
}

/// What a body has said since the node last looked.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct News {
    /// How far it has come.
    pub progress: Option<Progress>,
    /// The end of what it has printed so far.
    pub log: Option<String>,
    /// What the next attempt is to be given.
    pub checkpoint: Option<Vec<u8>>,
    /// How many checkpoints there had been, for [`Wire::stored`].
    pub version: u64,
}

/// A checkpoint that is too large to be kept.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a checkpoint of {0} bytes is too large; at most {CHECKPOINT_BYTES_MAX} are kept")]
pub struct CheckpointTooLarge(pub usize);

impl Wire {
    /// Takes these values out of everything that the node is told from now on.
    pub fn mask(&self, masks: Masks) {
        self.said().masks = masks;
    }

    /// Says how far the body has come; what is `None` stays as said before.
    pub fn progress(&self, mut news: Progress) {
        let mut said = self.said();
        news.message.iter_mut().for_each(|message| said.masks.mask(message));
        said.progress.update(news);
        said.is_new.progress = true;
    }

    /// Passes on what the body prints.
    pub fn log(&self, bytes: &[u8]) {
        let mut said = self.said();
        said.log.push(bytes);
        said.is_new.log = true;
    }

    /// Saves what the next attempt is to be given; it takes the place of what was saved before.
    pub fn checkpoint(&self, data: Vec<u8>) -> Result<(), CheckpointTooLarge> {
        if data.len() > CHECKPOINT_BYTES_MAX {
            return Err(CheckpointTooLarge(data.len()));
        }
        let mut said = self.said();
        let mut data = data;
        said.masks.mask_bytes(&mut data);
        said.checkpoint = Some(data);
        said.version += 1;
        said.is_new.checkpoint = true;
        Ok(())
    }

    /// How far the body says it has come.
    pub fn progress_so_far(&self) -> Progress {
        self.said().progress.clone()
    }

    /// The end of what it has printed; `None` if it has not.
    pub fn log_so_far(&self) -> Option<String> {
        self.said().log_so_far()
    }

    /// Waits for a sign of life from whoever was called.
    pub async fn heard(&self) {
        self.0.heard.notified().await;
    }

    /// Passes on a sign of life. Whoever sent it may have left notes in the store.
    pub fn sign_of_life(&self) {
        self.said().was_taken = true;
        self.0.heard.notify_one();
    }

    /// What is new since the last time; `None` if nothing is.
    pub fn take_news(&self) -> Option<News> {
        let mut said = self.said();
        if said.is_new == New::default() {
            return None;
        }
        let new = std::mem::take(&mut said.is_new);
        said.was_taken = true;
        Some(News {
            progress: new.progress.then(|| said.progress.clone()),
            log: new.log.then(|| said.log_so_far()).flatten(),
            checkpoint: new.checkpoint.then(|| said.checkpoint.clone()).flatten(),
            version: said.version,
        })
    }

    /// May there be notes of the body in the store?
    pub fn was_taken(&self) -> bool {
        self.said().was_taken
    }

    /// The store has all news up to these.
    pub fn stored(&self, version: u64) {
        let mut said = self.said();
        if said.version == version {
            said.checkpoint = None;
        }
    }

    /// Takes the last checkpoint, unless it is known to be stored.
    pub fn take_unstored(&self) -> Option<Vec<u8>> {
        self.said().checkpoint.take()
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.0.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Said {
    /// Masked when it is read: a value may come in pieces.
    fn log_so_far(&mut self) -> Option<String> {
        let mut text = self.log.text_so_far()?;
        self.masks.mask(&mut text);
        Some(text)
    }
}

impl std::fmt::Debug for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Said").field("progress", &self.progress).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_are_told_once_and_add_up() {
        let wire = Wire::default();
        assert_eq!(wire.take_news(), None);
        assert!(!wire.was_taken());
        wire.progress(Progress { done: Some(1), ..Progress::default() });
        wire.log(b"one\n");
        wire.checkpoint(vec![1]).unwrap();
        wire.checkpoint(vec![2]).unwrap();
        let news = wire.take_news().unwrap();
        assert_eq!(news.progress.unwrap().done, Some(1));
        assert_eq!(news.log.as_deref(), Some("one\n"));
        assert_eq!(news.checkpoint, Some(vec![2]));
        assert_eq!(wire.take_news(), None);
        wire.log(b"two\n");
        let news = wire.take_news().unwrap();
        assert_eq!(news.log.as_deref(), Some("one\ntwo\n"));
        assert_eq!((news.progress, news.checkpoint), (None, None));
        assert!(wire.was_taken());
    }

    #[test]
    fn a_checkpoint_that_is_too_large_leaves_the_last_one() {
        let wire = Wire::default();
        wire.checkpoint(vec![1]).unwrap();
        let size = CHECKPOINT_BYTES_MAX + 1;
        assert_eq!(wire.checkpoint(vec![0; size]), Err(CheckpointTooLarge(size)));
        assert_eq!(wire.take_unstored(), Some(vec![1]));
    }

    #[test]
    fn a_checkpoint_is_kept_until_it_is_stored() {
        let wire = Wire::default();
        wire.checkpoint(vec![1]).unwrap();
        let first = wire.take_news().unwrap();
        wire.checkpoint(vec![2]).unwrap();
        wire.stored(first.version);
        assert_eq!(wire.take_unstored(), Some(vec![2]));
        wire.checkpoint(vec![3]).unwrap();
        wire.stored(wire.take_news().unwrap().version);
        assert_eq!(wire.take_unstored(), None);
    }

    #[test]
    fn values_of_secrets_never_leave_the_wire() {
        let wire = Wire::default();
        wire.mask(Masks::new(["hunter22"]));
        wire.log(b"a hun");
        wire.log(b"ter22 b");
        wire.checkpoint(b"[\"hunter22\"]".to_vec()).unwrap();
        let message = Some("with hunter22".to_owned());
        wire.progress(Progress { message, ..Progress::default() });
        assert_eq!(wire.log_so_far().as_deref(), Some("a *** b"));
        let news = wire.take_news().unwrap();
        assert_eq!(news.log.as_deref(), Some("a *** b"));
        assert_eq!(news.checkpoint.as_deref(), Some(&b"[\"***\"]"[..]));
        assert_eq!(news.progress.unwrap().message.as_deref(), Some("with ***"));
    }

    #[tokio::test]
    async fn a_sign_of_life_is_heard_even_if_it_came_before() {
        let wire = Wire::default();
        wire.sign_of_life();
        wire.heard().await;
    }
}
