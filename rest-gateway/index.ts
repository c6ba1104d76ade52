export { type BatchPart, invalidBatch } from "./batch/batch-parts.ts";
export { handleBatch } from "./batch/handle-batch.ts";
export { BATCH_TYPE, hasBatchType, inheritHeaders, listResponses } from "./batch/part-messages.ts";
export type { BatchInterface, BatchScope } from "./batch/run-batch.ts";
export { type Functions, openFunctions } from "./functions/functions.ts";
export { FUNCTIONS_PREFIX, functionNotFound, toFunctionsErrorResponse } from "./functions/functions-error.ts";
export { functionsHandler, isFunctionPath } from "./functions/functions-routes.ts";
export { guideFolder } from "./guide/guide-routes.ts";
export { makeIdempotentRunner, readIdempotencyKey } from "./idempotency/idempotent-runner.ts";
export { errorReferenceRoutes, makeErrorPage } from "./pages/error-page.ts";
export { Html, html, makeRenderPage, type PageContent, type RenderPage, seeOther } from "./pages/page.ts";
export { startPageLinks, startPageRoutes } from "./pages/start-page.ts";
export {
  type AuthDependencies,
  authenticateCaller,
  authenticatePerson,
  authenticateUser,
  authRequired,
  findSession,
  type LimitedAuthDependencies,
  LOOPBACK_ADDRESS,
  queryWithoutApiKey,
  type RequestSession,
} from "./request/authenticate.ts";
export type {
  Dialect,
  ParsedRequest,
  Pipeline,
  ReadyResponse,
  RunIntent,
} from "./request/dialect.ts";
export { handleRequest, prepareTask } from "./request/handle-request.ts";
export { handleLiveRequest, isLiveRequest } from "./request/live-request.ts";
export { makeStatementContexts } from "./request/run.ts";
export { SHAPES_PATH, shapesHandler } from "./shapes/shapes-handler.ts";
export { toS3ErrorResponse } from "./storage/s3/s3-error.ts";
export { S3_PREFIX } from "./storage/s3/s3-request.ts";
export { s3Handler } from "./storage/s3/s3-routes.ts";
export { toStorageErrorResponse } from "./storage/storage-error.ts";
export { STORAGE_PREFIX } from "./storage/storage-request.ts";
export { storageHandler } from "./storage/storage-routes.ts";
export { studioFolder } from "./studio/studio-folder.ts";
export { makePrepareCall } from "./tasks/function-calls.ts";
export { makeQueueTask, prefersAsync, type QueueTask } from "./tasks/task-queue.ts";
export { makeTaskRoutes, TASKS_COLLECTION } from "./tasks/task-routes.ts";
export {
  maintainTasks,
  makeTaskList,
  makeTaskRunner,
  type PrepareCall,
  type TaskHandler,
  type TaskLane,
} from "./tasks/task-runner.ts";
