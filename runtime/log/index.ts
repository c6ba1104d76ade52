export { droppedLogLines, type Logger, makeLogger } from "./log.ts";
export { standardError, standardOutput } from "./standard-streams.ts";
