// The exports for the program, which opens, measures and ends the server. Interfaces use index.ts.
export { type DrainMode, drain, untilNoneAccepted } from "./drain.ts";
export { makeEntryListener, makeExpressApp, type RequestCounter } from "./entry.ts";
export { type HealthState, healthRoutes, isReady, makeHealthState, type WorkersState } from "./health.ts";
export { makeAdmission, makeExpensiveRequestLimit, openRateLimits, type RateLimits } from "./limits.ts";
export { toNodeHandler, toUpgradeListener } from "./node-handler.ts";
export {
  type FindRouteTemplate,
  HttpTraffic,
  makeRouteTemplateFinder,
  RequestMetrics,
  traceRequests,
} from "./observe-requests.ts";
export { makeClientConnectionReader } from "./request.ts";
export { makeRouter } from "./router.ts";
export {
  type AdmissionForUpgrade,
  makeUpgradeRouter,
  openServer,
  reloadCertificate,
  serverUrl,
} from "./server.ts";
