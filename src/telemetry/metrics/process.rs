//! What the process uses, with its processor time in fractions: in whole seconds a rate over a minute says nothing.

use std::time::Duration;

use prometheus::core::{Collector, Desc};
use prometheus::process_collector::ProcessCollector;
use prometheus::proto::{Counter, MetricFamily};
use rustix::time::{ClockId, clock_gettime};

/// The metric whose value is replaced.
const CPU: &str = "process_cpu_seconds_total";

/// The standard metrics of a process.
pub(super) struct ProcessMetrics(ProcessCollector);

impl ProcessMetrics {
    /// Those of this process.
    pub(super) fn of_this_one() -> Self {
        Self(ProcessCollector::for_self())
    }
}

impl Collector for ProcessMetrics {
    fn desc(&self) -> Vec<&Desc> {
        self.0.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut families = self.0.collect();
        for family in families.iter_mut().filter(|family| family.name() == CPU) {
            for metric in family.mut_metric() {
                let mut counter = Counter::default();
                counter.set_value(cpu_time().as_secs_f64());
                metric.set_counter(counter);
            }
        }
        families
    }
}

/// Processor time of all threads of this process, user's and system's.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_has_fractions() {
        let collector = ProcessMetrics::of_this_one();
        let seconds = || {
            let families = collector.collect();
            let family = families.iter().find(|family| family.name() == CPU).unwrap();
            family.get_metric()[0].get_counter().get_value()
        };
        let first = seconds();
        assert!(first > 0.0 && first.fract() != 0.0, "{first}");
        assert!(seconds() >= first);
    }
}
