//! A model's opinion on which tools fit a message, from an OpenAI-compatible endpoint.
//!
//! The opinion is optional by design: the local ranking is an answer already, so whatever goes wrong here is an error
//! that the caller passes over, never a wait. One deadline holds for all of a call. A bound holds for the calls at
//! once, and the next caller is turned away instead of queued. A circuit [breaker](BreakerState) keeps a broken
//! endpoint from costing every message the deadline.
//!
//! Neither side of the conversation is trusted. The message goes out as quoted data under a fixed instruction, in
//! `request`; of what comes back only names of candidates count, in `answer`. Redirects are not followed. The key is
//! never logged, nor is any text that the endpoint sends.

mod answer;
mod breaker;
mod check;
mod connect;
mod endpoint;
mod key;
mod request;
mod retry;
mod settings;

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, StatusCode};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

pub use breaker::{BreakerState, MAX_PAUSE};
pub use check::check;
pub use connect::TrustError;
pub use endpoint::{Endpoint, EndpointError};
pub use key::KeyError;
pub use settings::{QuestionLimits, Settings};

use answer::Heard;
use breaker::{Breaker, CallVerdict, Pass};
use request::Form;

use crate::telemetry::Metrics;
use crate::telemetry::events::{LlmAsked, LlmBreakerChanged, LlmOutcome};

/// A model to ask.
#[derive(Debug)]
pub struct Llm {
    settings: Settings,
    client: connect::Connector,
    authorization: Option<HeaderValue>,
    breaker: Breaker,
    slots: Semaphore,
    /// Index in [`Form::ALL`] of the most that the endpoint was seen to understand.
    form: AtomicUsize,
    metrics: Arc<Metrics>,
}

/// What a model is asked.
#[derive(Debug, Clone)]
pub struct ModelQuestion<'q> {
    pub message: &'q str,
    /// The tools in question, the best first: those at the end are left out if there are too many.
    pub candidates: Vec<Candidate<'q>>,
}

/// A tool in question.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'q> {
    pub name: &'q str,
    /// Its category; may be empty.
    pub category: &'q str,
    /// What it does; the first line is used.
    pub description: &'q str,
}

/// What a model thinks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Opinion {
    /// Names of candidates that help, each once, the best first. A candidate that is not among them was not judged, or
    /// was not found to help.
    pub ranked: Vec<String>,
    /// Why, in one line for people, of at most 600 characters.
    pub reasoning: Option<String>,
}

/// A model cannot be asked at all; for the operator to mend.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// There is no key.
    #[error("qualifier.llm")]
    Key(#[from] KeyError),
    /// There is nobody to trust.
    #[error("qualifier.llm")]
    Trust(#[from] TrustError),
}

/// There is no opinion.
#[derive(Debug, thiserror::Error)]
pub enum LlmError {
    /// It took too long.
    #[error("no answer within {after:?}")]
    Deadline { after: Duration },
    /// No connection, or none that can be trusted.
    #[error("cannot connect")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The connection broke, or what came over it was not HTTP.
    #[error("the answer broke off")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It is elsewhere, where the configuration does not say.
    #[error("redirects are not followed ({0})")]
    Redirected(StatusCode),
    #[error("the endpoint answered {status}")]
    Status {
        status: StatusCode,
        /// When it wants to be asked again, if it said so; as it said it.
        wait: Option<Duration>,
    },
    /// The answer is too long.
    #[error("the answer has more than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The answer is not what was asked for.
    #[error("the {what} cannot be used: {reason}")]
    Malformed {
        /// The response, or the answer in it.
        what: &'static str,
        reason: &'static str,
    },
    /// The model does not want to.
    #[error("the model declined to answer")]
    Declined,
    /// It failed too often or asked to be left alone, so it was not asked.
    #[error("not asked: it failed or asked for a pause; the next attempt is due within {pause:?}")]
    Open {
        /// When to try again, at the latest.
        pause: Duration,
    },
    /// Too many others are being asked, so it was not asked.
    #[error("not asked: {limit} calls are in flight")]
    Busy {
        /// The most at once.
        limit: usize,
    },
}

impl LlmError {
    /// The outcome as a label of metrics.
    pub fn outcome(&self) -> LlmOutcome {
        match self {
            Self::Deadline { .. } => LlmOutcome::Deadline,
            Self::Unreachable(_) => LlmOutcome::Unreachable,
            Self::Broken(_) => LlmOutcome::Broken,
            Self::Redirected(_) => LlmOutcome::Redirected,
            Self::Status { .. } => LlmOutcome::Status,
            Self::TooLarge { .. } => LlmOutcome::TooLarge,
            Self::Malformed { .. } => LlmOutcome::Malformed,
            Self::Declined => LlmOutcome::Declined,
            Self::Open { .. } => LlmOutcome::Open,
            Self::Busy { .. } => LlmOutcome::Busy,
        }
    }

    /// The innermost reason: the ones around it say less.
    fn cause(&self) -> Option<String> {
        let mut innermost = self.source()?;
        while let Some(source) = innermost.source() {
            innermost = source;
        }
        Some(innermost.to_string())
    }

    fn emit(&self, took: Duration, metrics: &Metrics) {
        let cause = self.cause();
        LlmAsked { outcome: self.outcome(), took, dropped: 0, error: Some((self, cause.as_deref())) }.emit(metrics);
    }
}

impl Llm {
    /// Makes ready to ask; no connection is made. Reads the key and the certificates.
    pub fn new(settings: Settings, metrics: Arc<Metrics>) -> Result<Self, SetupError> {
        let authorization = key::authorization(settings.api_key_env.as_deref())?;
        let client = connect::client(&settings)?;
        let limits = &settings.limits;
        let breaker = Breaker::new(limits.max_failures, limits.pause);
        let slots = Semaphore::new(limits.max_concurrent);
        LlmBreakerChanged::from(BreakerState::Closed).emit(&metrics);
        Ok(Self { settings, client, authorization, breaker, slots, form: AtomicUsize::new(0), metrics })
    }

    /// Tools that are shown to it at most.
    pub fn max_candidates(&self) -> usize {
        self.settings.limits.max_candidates
    }

    /// Asks for an opinion; without candidates there is none, and nothing is sent. May be dropped at any time.
    pub async fn ask(&self, question: &ModelQuestion<'_>) -> Result<Opinion, LlmError> {
        if question.candidates.is_empty() {
            return Ok(Opinion::default());
        }
        let call = self.begin().inspect_err(|error| error.emit(Duration::ZERO, &self.metrics))?;
        let after = self.settings.limits.timeout;
        let outcome = timeout(after, self.exchange(question)).await.unwrap_or(Err(LlmError::Deadline { after }));
        call.end(outcome.as_ref());
        outcome.map(|heard| heard.opinion)
    }

    fn begin(&self) -> Result<Call<'_>, LlmError> {
        let limit = self.settings.limits.max_concurrent;
        let slot = self.slots.try_acquire().map_err(|_| LlmError::Busy { limit })?;
        let start = Instant::now();
        let pass = self.breaker.admit(start).map_err(|pause| LlmError::Open { pause })?;
        if pass.is_probe {
            LlmBreakerChanged::from(BreakerState::HalfOpen).emit(&self.metrics);
        }
        Ok(Call { llm: self, pass, start, ended: false, _slot: slot })
    }

    /// Asks for as much as the endpoint was seen to understand, and for less if it does not.
    async fn exchange(&self, question: &ModelQuestion<'_>) -> Result<Heard, LlmError> {
        let (prompt, shown) = request::prompt(question, &self.settings.limits);
        let candidates: Vec<&str> = question.candidates[..shown].iter().map(|candidate| candidate.name).collect();
        let mut form = self.form.load(Ordering::Relaxed).min(Form::ALL.len() - 1);
        let body = loop {
            match self.send(&Form::ALL[form].body(&self.settings.model, &prompt)).await {
                Err(LlmError::Status {
                    status: StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY, ..
                }) if form + 1 < Form::ALL.len() => form += 1,
                answer => break answer?,
            }
        };
        self.form.store(form, Ordering::Relaxed);
        answer::read(&body, &candidates)
    }

    async fn send(&self, body: &serde_json::Value) -> Result<Bytes, LlmError> {
        let mut request = Request::new(Full::new(Bytes::from(body.to_string())));
        *request.method_mut() = Method::POST;
        request.uri_mut().clone_from(self.settings.url.uri());
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        let response = self.client.request(request).await.map_err(|error| {
            if error.is_connect() { LlmError::Unreachable(error.into()) } else { LlmError::Broken(error.into()) }
        })?;
        let status = response.status();
        if status.is_redirection() {
            return Err(LlmError::Redirected(status));
        }
        if status != StatusCode::OK {
            let wait = retry::wait(status, response.headers(), SystemTime::now());
            return Err(LlmError::Status { status, wait });
        }
        let limit = self.settings.limits.max_answer_bytes;
        let body = Limited::new(response.into_body(), limit).collect().await.map_err(|error| {
            if error.is::<LengthLimitError>() { LlmError::TooLarge { limit } } else { LlmError::Broken(error) }
        })?;
        Ok(body.to_bytes())
    }
}

/// A call in flight. It is counted even if nobody waits for its end.
struct Call<'l> {
    llm: &'l Llm,
    pass: Pass,
    start: Instant,
    ended: bool,
    _slot: SemaphorePermit<'l>,
}

impl Call<'_> {
    fn end(mut self, outcome: Result<&Heard, &LlmError>) {
        self.ended = true;
        let (took, metrics) = (self.start.elapsed(), &self.llm.metrics);
        match outcome {
            Ok(heard) => {
                LlmAsked { outcome: LlmOutcome::Answered, took, dropped: heard.dropped, error: None }.emit(metrics);
            }
            Err(error) => error.emit(took, metrics),
        }
        self.judge(match outcome {
            // A model that declines is at work.
            Ok(_) | Err(LlmError::Declined) => CallVerdict::Worked,
            Err(LlmError::Status { wait: Some(wait), .. }) => CallVerdict::TurnedAway { wait: *wait },
            Err(_) => CallVerdict::Failed,
        });
    }

    fn judge(&self, verdict: CallVerdict) {
        if let Some(state) = self.llm.breaker.judge(self.pass, verdict, Instant::now()) {
            LlmBreakerChanged::from(state).emit(&self.llm.metrics);
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let took = self.start.elapsed();
            LlmAsked { outcome: LlmOutcome::Abandoned, took, dropped: 0, error: None }.emit(&self.llm.metrics);
            self.judge(CallVerdict::Unknown);
        }
    }
}
