export { INTERVAL_SECONDS } from "./intervals.ts";
export {
  BUCKET_COUNT,
  counter,
  DurationHistogram,
  EXPOSITION_TYPE,
  formatExposition,
  gauge,
  histogram,
  KeyedCounter,
  labelled,
  type Metric,
  type MetricSample,
  type MetricSource,
  makeMetricsReader,
  makeServiceCounters,
  metricsOfCounters,
  type ProcessMetrics,
  type ServiceCounters,
  sumCounters,
} from "./metrics.ts";
export type { FunctionLine, ProcessActivity, ProcessSample, SharedActivity } from "./process-activity.ts";
export { ProcessHistory, type ProcessReadings, sumSamples } from "./process-history.ts";
export { MAX_RECENT_REQUESTS, RecentRequests, type RequestSearch, searchRequests } from "./recent-requests.ts";
export { addUp, RequestHistory, type RequestTotals, summarizeIntervals } from "./request-history.ts";
export { openRequestLog, type RequestLog, requestLogFolder } from "./request-log.ts";
export { type OtherRequests, type RequestOutline, RequestRecorder } from "./request-recorder.ts";
export { searchRequestLog } from "./search-request-log.ts";
export { openTracing, type Tracing } from "./tracing.ts";
