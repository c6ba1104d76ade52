// The exports that the dialects use, beside their types (request/dialect.ts) and callers (request/authenticate.ts).
export { type BatchPart, invalidBatch } from "./batch/batch-parts.ts";
export { handleBatch } from "./batch/handle-batch.ts";
export { hasBatchType, inheritHeaders, listResponses } from "./batch/part-messages.ts";
export type { BatchInterface, BatchScope } from "./batch/run-batch.ts";
export { makeIdempotentRunner, readIdempotencyKey } from "./idempotency/idempotent-runner.ts";
export { handleRequest, prepareTask } from "./request/handle-request.ts";
export { handleLiveRequest, isLiveRequest } from "./request/live-request.ts";
export { makeStatementContexts } from "./request/run.ts";
export { makeQueueTask, prefersAsync, type QueueTask } from "./tasks/task-queue.ts";
export type { TaskHandler } from "./tasks/task-runner.ts";
