import { expect, test } from "vitest";
import { readConfig } from "../../../config/config.ts";
import { divideAmongWorkers } from "../../../service/processes/worker-cluster.ts";

const MIB = 2 ** 20;

const partOf = (settings: NodeJS.ProcessEnv) => divideAmongWorkers(readConfig(settings).config);

test("the settings of a worker are its part of what the service may use", () => {
  expect(partOf({ WEB_CONCURRENCY: "2" })).toMatchObject({
    workerShare: 1 / 2,
    poolSize: 14,
    maxBodyMemory: 32 * MIB,
    answerMemory: 128 * MIB,
    webSocketTotalBytes: 64 * MIB,
    taskConcurrency: 2,
  });
});

test("each worker has enough for one large request", () => {
  expect(partOf({ WEB_CONCURRENCY: "64" })).toMatchObject({
    poolSize: 4,
    maxBodyMemory: 20 * MIB,
    answerMemory: 64 * MIB,
    webSocketTotalBytes: 16 * MIB,
    taskConcurrency: 1,
  });
});

test("limits of one request, and those that workers share, are not divided", () => {
  const { config } = readConfig({ WEB_CONCURRENCY: "4" });
  const { maxBodyBytes, maxAnswerBytes, webSocketBytes, webSocketConnections, rateLimit } = config;
  const undivided = { maxBodyBytes, maxAnswerBytes, webSocketBytes, webSocketConnections, rateLimit };
  expect(divideAmongWorkers(config)).toMatchObject(undivided);
});
