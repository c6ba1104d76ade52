import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient, type SupabaseClient } from "@supabase/supabase-js";
import jwt from "jsonwebtoken";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Service } from "../../../service/wiring/service.ts";
import { cloneDatabase, type TestDatabase } from "../../database.ts";
import { SECRET } from "../../secret.ts";
import { serve } from "../../serve.ts";
import { type CommandResult, runCommand } from "./run-command.ts";

const KEY = jwt.sign({ role: "service_role" }, SECRET);

type Side = {
  readonly database: TestDatabase;
  readonly folder: string;
  readonly service: Service;
  readonly client: SupabaseClient;
};

let source: Side;
let target: Side;

async function open(): Promise<Side> {
  const folder = await mkdtemp(join(tmpdir(), "import-"));
  const database = await cloneDatabase();
  const service = await serve(database, { STORAGE_DIR: folder });
  return { database, folder, service, client: createClient(service.url, KEY) };
}

beforeAll(async () => {
  source = await open();
  target = await open();
  const { storage } = source.client;
  await storage.createBucket("open", { public: true, fileSizeLimit: 100_000, allowedMimeTypes: ["text/*"] });
  await storage.createBucket("closed");
  await storage.createBucket("empty");
  const files = { "a.txt": "first", "folder/b ü+.txt": "second", "folder/deep/c.txt": "first", none: "" };
  for (const [name, content] of Object.entries(files)) {
    const options = { contentType: "text/plain", cacheControl: "60", metadata: { of: name } };
    expect((await storage.from("open").upload(name, content, options)).error).toBeNull();
  }
  await storage.from("closed").upload("large", Buffer.alloc(3_000_000, "large "));
});

afterAll(async () => {
  for (const { service, database, folder } of [source, target]) {
    await service.stop();
    await database.drop();
    await rm(folder, { recursive: true });
  }
});

function importFrom(...words: string[]): Promise<CommandResult> {
  const settings = { STORAGE_DIR: target.folder, SOURCE_SERVICE_KEY: KEY };
  return runCommand("storage", ["import", "--from", source.service.url, ...words], target.database, settings);
}

/** Buckets and objects as their clients know them. */
async function contentOf({ database, client }: Side) {
  const owner = new pg.Client({ connectionString: database.ownerUrl });
  await owner.connect();
  const buckets = await owner.query(
    "select id, name, public, file_size_limit, allowed_mime_types from storage.buckets order by id",
  );
  const { rows } = await owner.query(`
    select bucket_id, name, metadata, user_metadata, created_at, updated_at from storage.objects
    order by bucket_id, name collate "C"`);
  await owner.end();
  const contents: string[] = [];
  for (const { bucket_id, name } of rows) {
    const { data } = await client.storage.from(bucket_id).download(name);
    contents.push(await data!.text());
  }
  return { buckets: buckets.rows, objects: rows, contents };
}

describe("storage import", () => {
  test("one bucket is copied alone", async () => {
    expect(await importFrom("--bucket", "closed")).toMatchObject({
      code: 0,
      stdout: "closed: 1 objects\nCopied 1 objects (3000000 bytes); 0 were here already.\n",
    });
    expect((await target.client.storage.listBuckets()).data!.map(({ id }) => id)).toEqual(["closed"]);
  });

  test("all is copied, with settings, metadata and times, and what is here is not copied again", async () => {
    const { code, stdout, stderr } = await importFrom();
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain("Copied 4 objects (16 bytes); 1 were here already.");
    expect(await contentOf(target)).toEqual(await contentOf(source));
    expect((await importFrom()).stdout).toContain("Copied 0 objects (0 bytes); 5 were here already.");
  });

  test("an object that has changed at the source is copied again", async () => {
    await source.client.storage.from("open").update("a.txt", "changed", { contentType: "text/plain" });
    expect((await importFrom()).stdout).toContain("Copied 1 objects (7 bytes); 4 were here already.");
    const { data } = await target.client.storage.from("open").download("a.txt");
    expect(await data!.text()).toBe("changed");
  });

  test("a source that cannot be read is named", async () => {
    const unknown = await importFrom("--bucket", "nowhere");
    expect([unknown.code, unknown.stderr]).toEqual([1, "The source has no bucket nowhere.\n"]);
    const settings = { STORAGE_DIR: target.folder, SOURCE_SERVICE_KEY: "wrong" };
    const refused = await runCommand("storage", ["import", "--from", source.service.url], target.database, settings);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining('is answered 400: {"statusCode":"403"'),
    ]);
  });

  test.each([
    [["import"], "--from"],
    [["import", "--from", "ftp://x"], "ftp://x is no HTTP address."],
    [["export"], 'no action "export"'],
    [["import", "--from", "http://localhost"], "Set SOURCE_SERVICE_KEY"],
  ] as const)("%j is a usage error", async (words, message) => {
    const { code, stderr } = await runCommand("storage", words, target.database);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  });
});
