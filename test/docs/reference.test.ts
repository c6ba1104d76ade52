import { execFile } from "node:child_process";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { createClient } from "@supabase/supabase-js";
import jwt from "jsonwebtoken";
import { beforeAll, expect, test } from "vitest";
import { useClient, useDatabase } from "../database.ts";
import { REPOSITORY } from "../repository.ts";
import { SECRET } from "../secret.ts";
import { useService } from "../serve.ts";
import { until } from "../until.ts";
import {
  REFERENCE,
  REFERENCE_ROWS,
  REFERENCE_TABLES,
  type ReferenceOperation,
  referenceOverview,
  referencePage,
} from "./reference.ts";

const FOLDER = join(REPOSITORY, "docs/reference");
const KEY = jwt.sign({ role: "service_role" }, SECRET);
const isRecording = process.env.RECORD === "reference";

const database = useDatabase({ template: "platform", sql: REFERENCE_TABLES });
const owner = useClient(database.ownerUrl);
const service = useService({ database, settings: { BASE_SCHEMA: "platform" } });

// The first schema is built after the start; until then GraphQL is unavailable.
beforeAll(() => until(async () => !(await runGraphql("{ __typename }")).includes("SERVICE_UNAVAILABLE")));

/** The result of a request to the rows of the page. */
async function onRows<Result>(send: () => Promise<Result>): Promise<Result> {
  await owner.query("truncate public.films, public.directors restart identity");
  await owner.query(REFERENCE_ROWS);
  await owner.query("select setval('public.directors_id_seq', 100)");
  return send();
}

async function runCurl(command: string): Promise<string> {
  const env = { PATH: process.env.PATH, URL: service.url, KEY };
  return (await promisify(execFile)("bash", ["-c", command], { env })).stdout.replaceAll("\r\n", "\n").trim();
}

async function runJs(code: string): Promise<string> {
  const supabase = createClient(service.url, KEY, { auth: { persistSession: false } });
  const [, names] = /const (\{.*?\}) =/.exec(code)!;
  const body = `${code}\nreturn JSON.stringify(${names});`;
  const AsyncFunction = (async () => {}).constructor as new (...words: string[]) => (...values: unknown[]) => unknown;
  return (await new AsyncFunction("supabase", body)(supabase)) as string;
}

async function runGraphql(query: string): Promise<string> {
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${KEY}` };
  const body = JSON.stringify({ query });
  return (await fetch(`${service.url}/graphql`, { method: "POST", headers, body })).text();
}

async function pageOf(operation: ReferenceOperation): Promise<string> {
  const { curl, js, graphql } = operation;
  const outputs = {
    curl: await onRows(() => runCurl(curl)),
    js: await onRows(() => runJs(js)),
    graphql: await onRows(() => runGraphql(graphql)),
  };
  expect(outputs.curl).not.toMatch(/"code":/);
  expect(outputs.js).toMatch(/"error":null/);
  expect(outputs.graphql).not.toMatch(/"errors":/);
  return referencePage(operation, outputs);
}

test.each(REFERENCE.map((operation) => [operation.file, operation] as const))(
  "the page %s shows what its requests answer",
  async (file, operation) => {
    const page = await pageOf(operation);
    const path = join(FOLDER, `${file}.md`);
    if (isRecording) await writeFile(path, page);
    expect(await readFile(path, "utf8"), "Record it: RECORD=reference npx vitest run test/docs/reference").toBe(page);
  },
);

test("the overview lists all pages, and there are no others", async () => {
  const path = join(FOLDER, "README.md");
  if (isRecording) await writeFile(path, referenceOverview());
  expect(await readFile(path, "utf8")).toBe(referenceOverview());
  const files = (await readdir(FOLDER)).sort();
  expect(files).toEqual([...REFERENCE.map(({ file }) => `${file}.md`), "README.md"].sort());
});
