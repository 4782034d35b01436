//! A question to the person who runs the play. The report asks it and sends the answer; without a terminal it
//! is dropped.

use std::sync::Arc;
use std::time::Duration;

use crate::value::mutex::Mutex;
use tokio::sync::oneshot;

#[derive(Debug, Clone)]
pub struct Question {
    /// What the person reads.
    pub words: String,
    /// Whether what is typed is shown.
    pub echo: bool,
    /// With it nothing is to be typed: it only lets the person end the time early.
    pub limit: Option<Duration>,
    reply: Arc<Mutex<Option<oneshot::Sender<Answer>>>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A line, without its end.
    Text(String),
    /// The time is over, or the person ended it.
    GoOn,
    /// The person aborts the run.
    Abort,
}

impl Question {
    /// A question and the receiver of its answer; an error there: no person can be asked.
    pub fn new(words: String, echo: bool, limit: Option<Duration>) -> (Question, oneshot::Receiver<Answer>) {
        let (sender, receiver) = oneshot::channel();
        (Question { words, echo, limit, reply: Arc::new(Mutex::new(Some(sender))) }, receiver)
    }

    /// The same question in other words.
    pub fn with_words(self, words: String) -> Question {
        Question { words, ..self }
    }

    /// Only the first answer counts.
    pub fn answer(&self, answer: Answer) {
        let sender = self.reply.lock().take();
        // Who asked may be gone.
        let _ = sender.map(|sender| sender.send(answer));
    }

    /// Whether the receiver of the answer was dropped.
    pub fn is_moot(&self) -> bool {
        let sender = self.reply.lock();
        sender.as_ref().is_none_or(oneshot::Sender::is_closed)
    }
}
