import { request } from "node:http";
import jwt from "jsonwebtoken";
import { describe, expect, test } from "vitest";
import { useDatabase } from "../database.ts";
import { useFixture } from "../fixture.ts";
import { SECRET } from "../secret.ts";
import { serveApart } from "./table/serving-process.ts";

const HEADERS = { Authorization: `Bearer ${jwt.sign({ role: "service_role" }, SECRET)}` };
const TEN_MEGABYTES = 10_000_000;

const database = useDatabase();
const serving = useFixture(() => serveApart(database));

/** Sends all of it; resolves with the status. `onSent` is called when the last byte is on its way. */
function post(path: string, type: string, body: Buffer, onSent: () => void): Promise<number> {
  const { hostname, port } = new URL(serving.url);
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const headers = { ...HEADERS, apikey: jwt.sign({ role: "anon" }, SECRET), "Content-Type": type };
  const sent = request({ hostname, port, path, method: "POST", headers }, (response) => {
    response.resume().on("end", () => resolve(response.statusCode!));
  });
  sent.on("error", reject).end(body, onSent);
  return promise;
}

/** Returns the number of answers to another client between the end of a body and its answer. */
async function answersMeanwhile(path: string, type: string, body: Buffer): Promise<number> {
  let isSent = false;
  let isAnswered = false;
  const answered = post(path, type, body, () => {
    isSent = true;
  }).then((status) => {
    isAnswered = true;
    return status;
  });
  let answers = 0;
  while (!isAnswered) {
    await (await fetch(`${serving.url}/health/live`)).arrayBuffer();
    if (isSent && !isAnswered) answers++;
  }
  expect(await answered).toBeLessThan(500);
  return answers;
}

describe("while a body of ten megabytes is read, other requests are answered", () => {
  test.each([
    ["CSV of short lines", "/rest/v1/nowhere", "text/csv", `name,email\n${'"a""b","c"\n'.repeat(TEN_MEGABYTES / 11)}`],
    ["CSV of empty lines", "/rest/v1/nowhere", "text/csv", `name\n${"\n".repeat(TEN_MEGABYTES)}`],
    ["JSON of rows", "/rest/v1/nowhere", "application/json", `[${'{"a":"b"},'.repeat(TEN_MEGABYTES / 10)}{"a":"b"}]`],
    ["JSON of numbers", "/api/v1/users", "application/json", `[${"1,".repeat(TEN_MEGABYTES / 2)}1]`],
    ["JSON of objects", "/users", "application/json", `[${'{"name":1},'.repeat(TEN_MEGABYTES / 11)}{}]`],
  ])("%s for %s", async (_what, path, type, text) => {
    expect(await answersMeanwhile(path, type, Buffer.from(text))).toBeGreaterThan(5);
  });
});
