export { type Functions, openFunctions } from "./functions/functions.ts";
export { FUNCTIONS_PREFIX, functionNotFound, toFunctionsErrorResponse } from "./functions/functions-error.ts";
export { functionsHandler, isFunctionPath } from "./functions/functions-routes.ts";
export { guideFolder } from "./guide/guide-routes.ts";
export { SHAPES_PATH, shapesHandler } from "./shapes/shapes-handler.ts";
export { toS3ErrorResponse } from "./storage/s3/s3-error.ts";
export { S3_PREFIX } from "./storage/s3/s3-request.ts";
export { s3Handler } from "./storage/s3/s3-routes.ts";
export { toStorageErrorResponse } from "./storage/storage-error.ts";
export { STORAGE_PREFIX } from "./storage/storage-request.ts";
export { storageHandler } from "./storage/storage-routes.ts";
export { STUDIO_PATH } from "./studio/studio-files.ts";
export { studioFolder } from "./studio/studio-folder.ts";
export { makePrepareCall } from "./tasks/function-calls.ts";
export { makeTaskRoutes } from "./tasks/task-routes.ts";
export {
  maintainTasks,
  makeTaskList,
  makeTaskRunner,
  type PrepareCall,
  type TaskLane,
} from "./tasks/task-runner.ts";
