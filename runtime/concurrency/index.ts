export { type AbortLike, LightAbortSignal, toSignal } from "./abort.ts";
export { batchLookups, cacheLookups, type LookUpKeys } from "./batched-lookup.ts";
export { Coalescer } from "./coalescer.ts";
export {
  FairWorkQueue,
  forEachInSlices,
  noteAcceptedConnection,
  type PausableSource,
  paceReading,
  runLongWork,
  runStepwise,
  waitForLargeWorkSlot,
} from "./event-loop-sharing.ts";
export { FairLimiter } from "./fair-limiter.ts";
export type { WorkShare } from "./fair-queue.ts";
export { FifoQueue } from "./fifo-queue.ts";
export { type HandlePeerMessage, NO_PEERS, type PeerTopic, type PeerWorkers } from "./peer-workers.ts";
export { startResponsiveTimer } from "./responsive-timer.ts";
export { awaitedRetryDelay, retryDelay } from "./retry-delay.ts";
export { runToCompletion, type Stepwise } from "./stepwise.ts";
export {
  KeptWork,
  RepeatedWork,
  restartWorkOfUncaught,
  type StartedWork,
  Supervisor,
  WorkReport,
} from "./supervisor.ts";
